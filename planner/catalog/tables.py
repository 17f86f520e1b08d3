"""The catalog as tables, for rules that are queries: their published columns, and their rows from the project.

A column may be added to a table; none is removed, renamed or given another meaning. No table has a query, a variable,
an argument or a setting of a connection. Owners, tags and descriptions are as the catalog's pages show them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, ClassVar

from mergeplan.planner.catalog.build import Neighbours, build_columns, list_audits
from mergeplan.planner.catalog.catalog import CatalogColumn
from mergeplan.planner.catalog.unused import words_of
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change
from mergeplan.planner.project.lineage import Followed, FollowedModels
from mergeplan.planner.project.loader import Project
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory

Changes = Callable[[], Iterable[Change]]


@dataclass(frozen=True)
class ModelRow:
    """A model of the project; external models are models too."""

    table: ClassVar = "models"
    name: Annotated[str, "`schema.table`, in lower case"]
    kind: Annotated[str, "`FULL`, `VIEW`, `EXTERNAL`, ..."]
    path: Annotated[str, "its file"]
    owner: Annotated[str, "`''` if it has none"]
    description: Annotated[str, "`''` if it has none"]
    cron: Annotated[str, "when it is due"]
    tags: Annotated[str, "a JSON list, for `json_each`"]
    tests: Annotated[int, "how many unit tests it has"]


@dataclass(frozen=True)
class ColumnRow:
    """A column of a model; a model with unknown columns has no rows."""

    table: ClassVar = "columns"
    model: Annotated[str, "its model"]
    name: Annotated[str, "in lower case"]
    position: Annotated[int, "counted from 1"]
    type: Annotated[str, "as Spark writes it, `''` if it is not known"]
    description: Annotated[str, "`''` if it has none"]
    is_grain: Annotated[bool, "1 if `grain` names it"]
    is_key: Annotated[bool, "1 if it is in `unique_key`"]
    is_time: Annotated[bool, "1 if it is the time column"]


@dataclass(frozen=True)
class LineageRow:
    """A table that a model reads."""

    table: ClassVar = "lineage"
    model: Annotated[str, "the reader"]
    reads: Annotated[str, "the table, which need not be a model of the project"]


@dataclass(frozen=True)
class ColumnLineageRow:
    """A column that goes into a column."""

    table: ClassVar = "column_lineage"
    model: Annotated[str, "the reader"]
    column: Annotated[str, "its column; `''`: which rows it has; `*`: any column, because it is not known which"]
    from_model: Annotated[str, "the table that is read"]
    from_column: Annotated[str, "its column, `''` or `*` as above"]
    how: Annotated[str, "`made_from`, `decides_rows` or `every_column`"]


@dataclass(frozen=True)
class AuditRow:
    """A column that an audit of a model names; one row with the column `''` if it names none."""

    table: ClassVar = "audits"
    model: Annotated[str, "the audited model"]
    name: Annotated[str, "the audit"]
    column: Annotated[str, "a column of the model, or `''`"]
    blocking: Annotated[bool, "1 if rows that it finds stop the plan"]
    standalone: Annotated[bool, "1 if it is a standalone audit that reads the model"]


@dataclass(frozen=True)
class ExposureRow:
    """A model that an exposure reads."""

    table: ClassVar = "exposures"
    name: Annotated[str, "the exposure"]
    type: Annotated[str, "`dashboard`, ..., or `''`"]
    owner: Annotated[str, "`''` if it has none"]
    model: Annotated[str, "the model"]


@dataclass(frozen=True)
class ChangeRow:
    """A model that the plan changes; `lint` makes no plan, and there the table is empty."""

    table: ClassVar = "changes"
    model: Annotated[str, "the model; a removed one is not in `models`"]
    change: Annotated[str, "`added`, `removed`, `direct`, `indirect`, `metadata`, `due` or `restated`"]
    category: Annotated[str, "`breaking`, `non_breaking`, ...; `''` of an added or removed model"]
    recomputed: Annotated[bool, "1 if its table is computed again"]


Row = ModelRow | ColumnRow | LineageRow | ColumnLineageRow | AuditRow | ExposureRow | ChangeRow
ROWS: tuple[type[Row], ...] = (ModelRow, ColumnRow, LineageRow, ColumnLineageRow, AuditRow, ExposureRow, ChangeRow)
NO_NEIGHBOURS = Neighbours(MappingProxyType({}))


@dataclass(frozen=True)
class CatalogTables:
    """The project whose catalog is queried; `changes` are those of the plan, and asked for only by a rule."""

    project: Project
    memory: ShapeMemory = NO_MEMORY
    known_lineage: Mapping[str, Followed] | None = None
    changes: Changes = tuple

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table; only `columns`, `column_lineage` and `audits` cost an analysis of queries."""
        match table:
            case "models":
                yield from map(self._model_row, self._models)
            case "columns":
                for model in self._models:
                    for position, column in enumerate(self._columns(model), start=1):
                        yield _column_row(model, position, column)
            case "lineage":
                yield from (LineageRow(model.name, table) for model in self._models for table in model.depends_on)
            case "column_lineage":
                for model in self._models:
                    for edge in self._lineage[model.name].edges:
                        yield ColumnLineageRow(
                            edge.target.model, edge.target.column, edge.source.model, edge.source.column, str(edge.how)
                        )
            case "audits":
                for model in self._models:
                    yield from self._audit_rows(model)
            case "exposures":
                for use in self.project.exposures:
                    yield from (ExposureRow(use.name, use.type, use.owner, model) for model in use.models)
            case "changes":
                for change in self.changes():
                    yield ChangeRow(change.name, str(change.change), str(change.category or ""), change.recomputed)

    @property
    def _models(self) -> Iterable[Model]:
        return self.project.models.values()

    @cached_property
    def _lineage(self) -> Mapping[str, Followed]:
        if self.known_lineage is not None:
            return self.known_lineage
        return FollowedModels(graph_of(self.project.models), self.memory)

    @cached_property
    def _test_counts(self) -> Mapping[str, int]:
        names = [test.model for test in self.project.tests]
        return {name: names.count(name) for name in set(names)}

    def _columns(self, model: Model) -> tuple[CatalogColumn, ...]:
        return build_columns(model, self._lineage[model.name], NO_NEIGHBOURS) or ()

    def _model_row(self, model: Model) -> ModelRow:
        about = model.metadata
        tags, tests = json.dumps(about.tags), self._test_counts.get(model.name, 0)
        return ModelRow(
            model.name, str(model.kind), model.path, about.owner, about.description, model.cron.text, tags, tests
        )

    def _audit_rows(self, model: Model) -> Iterator[AuditRow]:
        names = {*(column.name for column in self._columns(model)), *model.metadata.grain, *model.by_key.unique_key}
        texts = {call.name: call.query for call in model.checks.audits}
        for audit in list_audits(self.project, model):
            texts_of_call = (texts.get(audit.name, ""), *(value for _, value in audit.arguments))
            named = names.intersection(*[frozenset().union(*map(words_of, texts_of_call))])
            for column in sorted(named) or [""]:
                yield AuditRow(model.name, audit.name, column, audit.blocking, audit.standalone)


def _column_row(model: Model, position: int, column: CatalogColumn) -> ColumnRow:
    return ColumnRow(
        model.name,
        column.name,
        position,
        column.type,
        column.description,
        column.name in model.metadata.grain,
        column.name in model.by_key.unique_key,
        column.name == model.by_time.time_column,
    )
