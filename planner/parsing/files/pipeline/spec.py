"""The specification of a pipeline, `spark-pipeline.yml`, as `spark-pipelines` reads it."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.sql.yaml_documents import read_document

_NAME = re.compile(r"[\w-]+")


def check_name(name: str) -> str:
    """Return a name that is put before those of tables; raise ValueError for any other text."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"`{name[:80]}` is no name: letters, digits, `_` and `-`")
    return name


Name = Annotated[str, AfterValidator(check_name)]


class Glob(BaseModel):
    """A pattern of the files to read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    include: str


class Library(BaseModel):
    """One item of `libraries`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    glob: Glob


class PipelineSpec(BaseModel):
    """A pipeline: where its tables lie, and the files that define them. `storage` is that of streams, and not used."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str
    storage: str = ""
    catalog: Name | None = None
    database: Name | None = None
    named_schema: Name | None = Field(default=None, alias="schema")
    configuration: dict[str, str] = {}
    libraries: tuple[Library, ...] = ()

    @property
    def schema_name(self) -> str:
        """The schema of names without one, preceded by its catalog unless that is Spark's own."""
        schema = self.database or self.named_schema or "default"
        return schema if self.catalog in (None, SESSION_CATALOG) else f"{self.catalog}.{schema}"

    def reads(self, path: str) -> bool:
        """Return True for a file that defines tables, by its path from the specification."""
        return any(_is_match(path, library.glob.include) for library in self.libraries)


def parse_spec(path: str, text: str) -> PipelineSpec:
    document = read_document(path, text)
    try:
        return PipelineSpec.model_validate(document.value)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = tuple(part for part in wrong["loc"] if isinstance(part, str | int))
        subject = f"`{'.'.join(map(str, where))}` of the pipeline" if where else "The pipeline"
        message = f"{subject}: {wrong['msg'].removeprefix('Value error, ')}."
        raise document.error(where, message, "") from None


def _is_match(path: str, include: str) -> bool:
    """Return True if a file matches one of Spark's patterns: a file, `folder/**`, or a pattern within one folder."""
    include = include.removeprefix("./")
    if include.endswith("/**"):
        return path.startswith(include[:-2])
    return PurePosixPath(path).match(include) and path.count("/") == include.count("/")
