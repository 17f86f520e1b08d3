"""Models, environments and plans in a line each, for the tests of the pure part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import sqlglot

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.build import Plan, Request, build_plan
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.semantics.columns import tables_of
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.snapshot.environment import Environment

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def model(name: str, sql: str = "", kind: Kind = Kind.FULL, **fields: Any) -> Model:
    if "columns" in fields:
        fields["columns"] = tuple(Column(column, "string") for column in fields["columns"].split())
    reads = tuple(sorted(tables_of(sqlglot.parse_one(sql, dialect="spark")))) if sql else ()
    source = fields.pop("source", f"MODEL ();\n{sql}")
    made = Model(name, kind, f"models/{name}.sql", 1, source, sql, depends_on=reads)
    return replace_settings(made, fields)


def external(name: str, columns: str) -> Model:
    return model(name, kind=Kind.EXTERNAL, columns=columns)


def project(*models: Model) -> dict[str, Model]:
    return {m.name: m for m in models}


@contextmanager
def any_columns() -> Iterator[None]:
    """Plan models whose properties name columns that their queries lack, which is an error elsewhere."""
    with patch("mergeplan.planner.plan.category.decide.find_column_errors", return_value=()):
        yield


def promote(
    models: Mapping[str, Model], name: str = "prod", shapes: ShapeMemory = NO_MEMORY
) -> tuple[Environment, Loaded]:
    """An environment that shows these models, with everything loaded."""
    plan = make_plan(models, target=Environment(name), base=Environment("prod"), shapes=shapes)
    timelines = {c.new.table: c.needed for c in plan.changes if c.new}
    environment = Environment(name, plan.new.snapshots, plan.new.views, 1, plan.id, NOW)
    return environment, Loaded(timelines, frozenset(timelines))


def make_plan(
    models: Mapping[str, Model],
    target: Environment | None = None,
    base: Environment | None = None,
    loaded: Loaded | None = None,
    **request: Any,
) -> Plan:
    base = base or Environment("prod")
    window = request.pop("window", Window(NOW))
    words = request.pop("words", ())
    return build_plan(models, target or base, base, loaded or Loaded({}), Request(window, **request), words)


def change_of(before: Mapping[str, Model], after: Mapping[str, Model], **categories: Category) -> dict[str, Change]:
    """Name -> change of a plan for `dev` that turns prod with `before` into `after`."""
    prod, loaded = promote(before)
    wanted = {name.replace("__", "."): category for name, category in categories.items()}
    plan = make_plan(after, Environment("dev"), prod, loaded, categories=wanted)
    return {change.name: change for change in plan.changes}
