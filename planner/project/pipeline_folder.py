"""A Spark Declarative Pipeline as a folder of ours: each table of its SQL files is a file with the text of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.project.folder import Folder

if TYPE_CHECKING:  # what reads pipelines is imported for those alone
    from mergeplan.planner.parsing.files.pipeline.spec import PipelineSpec
    from mergeplan.planner.parsing.files.pipeline.statements import PipelineTable

SPECS = ("spark-pipeline.yml", "spark-pipeline.yaml")
PYTHON = "This file of Python defines tables of the pipeline, which mergeplan does not read."


def is_pipeline(root: Path) -> bool:
    return any((root / name).is_file() for name in SPECS)


def read_spec(reading: Folder) -> PipelineSpec:
    """Return the specification of the pipeline in a folder; raise ProjectError."""
    from mergeplan.planner.parsing.files.pipeline.spec import parse_spec

    names = [name for name in SPECS if (reading.root / name).is_file()]
    if len(names) > 1:
        raise ProjectError(f"There are both {' and '.join(names)}.", place=Place(names[0], 1), hint="Delete one.")
    return parse_spec(names[0], reading.text(names[0]))


class PipelineFolder(Folder):
    """The tables and views of a pipeline, by the path of their file and, for all but its first, their name."""

    def __init__(self, folder: Folder) -> None:
        vars(self).update(vars(folder))
        self.spec = read_spec(folder)

    @cached_property
    def tables(self) -> Mapping[str, PipelineTable]:
        tables: dict[str, PipelineTable] = {}
        for path in filter(self.spec.reads, self._list_paths()):
            for table in self._read_tables(path):
                tables[path if path not in tables else f"{path}#{table.name or table.line}"] = table
        return tables

    def _read_tables(self, path: str) -> Iterator[PipelineTable]:
        from mergeplan.planner.parsing.files.pipeline.statements import PipelineTable, read_statements

        if path.endswith(".py"):
            error = ProjectError(PYTHON, place=Place(path, 1), hint="Write them as SQL, or as models of mergeplan.")
            yield PipelineTable(path, 1, "", error=error)
        elif path.endswith(".sql"):
            try:
                yield from read_statements(path, super().text(path), self.spec.schema_name)
            except ProjectError as error:
                yield PipelineTable(path, 1, "", error=error)

    def _list_paths(self) -> Iterator[str]:
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(name for name in names if not name.startswith((".", "__pycache__")))
            yield from (
                Path(folder, name).relative_to(self.root).as_posix() for name in sorted(files) if name[0] != "."
            )

    def files(self, folder: str, ignore_patterns: Sequence[str], *suffixes: str) -> Iterator[str]:
        """Yield the paths of the tables for `models`, and the files of mergeplan's other folders."""
        if folder == "models" and ".sql" in suffixes:
            yield from self.tables
        elif folder != "models":
            yield from super().files(folder, ignore_patterns, *suffixes)

    def hash(self, name: str) -> str:
        if name not in self.tables:
            return super().hash(name)
        self.hashes[name] = digest(self.tables[name].text, str(self.tables[name].error))
        return self.hashes[name]

    def text(self, name: str) -> str:
        """Return the text that a path represents; raise ProjectError for a statement that cannot be translated."""
        if name not in vars(self).get("tables", {}):
            return super().text(name)
        table = self.tables[name]
        self.last = name
        if table.error is not None:
            raise table.error
        self.hashes[name] = digest(table.text, "None")
        return table.text

    def model_names(self, name: str) -> tuple[tuple[str, ...], bool]:
        """Return the model of a path, even if it cannot be opened, and True if it is known."""
        table = self.tables.get(name)
        return ((table.name,) if table and table.name else ()), bool(table and table.name)
