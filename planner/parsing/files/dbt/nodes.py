"""The data that dbt provides of a project: its nodes with their compiled texts, sources, exposures."""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mergeplan.planner.errors import Place, ProjectError

LONGEST = 2_000_000  # characters of one compiled text
Text = Annotated[str, Field(max_length=LONGEST)]
_QUERY = re.compile(r"[\s(]*(select|with)\b", re.IGNORECASE)
_NAME = re.compile(r"[^`.]+|`(?:[^`]|``)+`")


class DbtPart(BaseModel):
    """A part of the child's output."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class DbtColumn(DbtPart):
    """A column as YAML describes it; `type` is '' if it has none."""

    name: str
    type: str = ""
    description: str = ""


class DbtQuestion(DbtPart):
    """A question at compile time: a node's columns, if a source exists, or the rows of a query of the node `by`."""

    kind: Literal["columns", "exists", "query"]
    subject: Text
    by: str

    @property
    def key(self) -> str:
        """The key of its answer."""
        return json.dumps([self.kind, self.subject, self.by])


class DbtRelation(DbtPart):
    """A part that has a table; `relation` is the table's name as dbt writes it."""

    relation: str

    @property
    def table(self) -> str:
        """Its name in mergeplan: in lower case, without back-ticks."""
        return table_name(self.relation)


class DbtNode(DbtRelation):
    """A model, seed, snapshot or test.

    `relation` is the name of its table as dbt writes it. `text` is the query of a table's first run, `later` that of an
    incremental run. `error` is why it has none, and `line` the place in its file. `attached` is the node of a generic
    test. `asks` are the questions of its compilation, `hook_asks` those of its hooks. A hook whose questions have no
    answer stays as it is written.
    """

    id: str
    type: Literal["model", "seed", "snapshot", "test", "operation", "sql operation", "rpc"]
    name: str
    path: str
    package: str
    language: str
    settings: dict[str, Any]
    columns: tuple[DbtColumn, ...]
    description: Text
    tags: tuple[str, ...]
    owner: str
    depends_on: tuple[str, ...]
    attached: str
    hooks: tuple[Text, ...]  # before its table is made
    text: Text
    later: Text
    error: str
    types: tuple[tuple[str, str], ...]
    asks: tuple[DbtQuestion, ...] = ()
    hook_asks: tuple[DbtQuestion, ...] = ()
    post_hooks: tuple[Text, ...] = ()
    line: int = 1

    def refusal(self, why: str, hint: str = "") -> ProjectError:
        return ProjectError(f"`{self.table}` {why}.", place=Place(self.path, 1), hint=hint)

    @property
    def materialized(self) -> str:
        """Its materialization in dbt, in lower case."""
        return str(self.settings.get("materialized", "view")).lower()

    def change_texts(self, change: Callable[[str], str]) -> Self:
        texts = {name: change(getattr(self, name)) for name in ("text", "later")}
        return self.model_copy(update=texts) if texts != {"text": self.text, "later": self.later} else self

    def words(self, setting: str) -> tuple[str, ...]:
        value = self.settings.get(setting)
        if value is None:
            return ()
        return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


class DbtSource(DbtRelation):
    """A table that dbt reads and does not build."""

    id: str
    path: str
    description: Text
    columns: tuple[DbtColumn, ...]
    tags: tuple[str, ...]
    freshness: dict[Literal["warn_after", "error_after", "filter", "loaded_at", "query"], Text] = {}

    @property
    def freshness_settings(self) -> dict[str, str]:
        """Return `freshness` as external_models.yaml has it; {} without an age. dbt's query has no filter."""
        texts = {str(key): text for key, text in self.freshness.items() if text}
        ignored = {"loaded_at", "filter"} if "query" in texts else set() if "loaded_at" in texts else {"filter"}
        return {key: text for key, text in texts.items() if key not in ignored} if self._has_age else {}

    @property
    def _has_age(self) -> bool:
        return bool(self.freshness.get("warn_after") or self.freshness.get("error_after"))


class DbtExposure(DbtPart):
    """A user of tables outside of the project."""

    name: str
    type: str
    url: str
    owner: str
    depends_on: tuple[str, ...]


class DbtFixture(DbtRelation):
    """Rows of a unit test, or the SELECT that returns them; `relation` is '' for the expected ones."""

    relation: str = ""
    rows: tuple[dict[str, Any], ...] = ()
    query: Text = ""


class DbtUnitTest(DbtPart):
    """A unit test; `error` is the part that mergeplan does not support, `load` its `config.meta.mergeplan`."""

    id: str
    name: str
    path: str
    model: str  # the node's id
    description: Text
    inputs: tuple[DbtFixture, ...]
    expect: DbtFixture
    is_incremental: bool
    error: str
    load: Any = {}


class DbtCall(DbtPart):
    """A macro's call in our unit test: its text, or the `error` why it has none; a `query` is as Spark reads it."""

    call: Text
    text: Text
    error: str
    query: Text = ""


class DbtProject(DbtPart):
    dbt: str
    nodes: tuple[DbtNode, ...]
    sources: tuple[DbtSource, ...]
    unit_tests: tuple[DbtUnitTest, ...]
    exposures: tuple[DbtExposure, ...]
    hooks: tuple[str, ...]
    files: tuple[str, ...]  # that were read, absolute
    calls: tuple[DbtCall, ...] = ()

    def with_nodes(self, nodes: Iterable[DbtNode]) -> Self:
        """Return the project with other nodes, and without the cached `by_id` that a plain copy would keep."""
        changed = self.model_copy(update={"nodes": tuple(nodes)})
        vars(changed).pop("by_id", None)
        return changed

    def change_texts(self, change: Callable[[str], str]) -> Self:
        changed = self.with_nodes(node.change_texts(change) for node in self.nodes)
        queries = (change(call.text) if _QUERY.match(call.text) else "" for call in self.calls)
        calls = [call.model_copy(update={"query": query}) for call, query in zip(self.calls, queries, strict=True)]
        return changed.model_copy(update={"calls": tuple(calls)})

    @cached_property
    def by_id(self) -> dict[str, DbtNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def source_by_id(self) -> dict[str, DbtSource]:
        return {source.id: source for source in self.sources}


class DbtRound(DbtPart):
    """The nodes of a project that another round of answers changed."""

    nodes: tuple[DbtNode, ...]


def read_round(text: str, before: DbtProject | None, spell: Callable[[str], str] = str) -> DbtProject:
    """Return the child's project: whole, or with the nodes that changed since the round before.

    `spell` converts the target's queries to Spark's spelling. Raise ValidationError for a wrong form.
    """
    if before is not None:
        with suppress(ValidationError):
            new = {node.id: node.change_texts(spell) for node in DbtRound.model_validate_json(text).nodes}
            return before.with_nodes(new.get(node.id, node) for node in before.nodes)
    return DbtProject.model_validate_json(text).change_texts(spell)


def table_name(relation: str) -> str:
    """Return the name of a model for a relation as dbt writes it: `a`.`b` and a.b are a.b."""
    parts = (part.strip("`").replace("``", "`") for part in _NAME.findall(relation))
    return ".".join(part for part in parts if part).lower()
