"""A name that a table format cannot have is told when the plan is made, at the model's file and line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from tests.planner.building import make_plan, model, project, promote

MAPPED = ("spark.databricks.delta.properties.defaults.columnMapping.mode", "name")


def delta(sql: str, **fields: Any) -> Model:
    return model("s.m", sql, table_format="delta", **fields)


@pytest.mark.parametrize("name", ["c d", "a,b", "a;b", "f(a)", "a=b", "{x}", "a\tb"])
def test_a_name_that_delta_refuses_blocks_the_plan(name: str) -> None:
    (blocker,) = make_plan(project(delta(f"SELECT 1 AS `{name}`"))).blockers

    assert blocker.message.startswith(
        f"A table of Delta has no column `{name}`: spaces and `,;{{}}()=` are not allowed"
    )
    assert str(blocker.place).startswith("models/s.m.sql:2")


def test_a_field_that_delta_refuses_blocks_the_plan() -> None:
    typed = replace(delta("SELECT s FROM r.t"), columns=(Column("s", "array<struct<`c d`:int>>"),))

    assert [blocker.message.partition(":")[0] for blocker in make_plan(project(typed)).blockers] == [
        "A table of Delta has no column `c d`"
    ]


@pytest.mark.parametrize(
    "allowed",
    [
        delta("SELECT 1 AS `a-b`, 2 AS `a.b`, 3 AS `x/y`"),
        delta("SELECT 1 AS `c d`", settings=(MAPPED,)),
        model("s.m", "SELECT 1 AS `c d`", table_format="iceberg"),
        model("s.m", "SELECT 1 AS `c d`"),
        delta("SELECT 1 AS `c d`", kind=Kind.VIEW),
    ],
)
def test_other_names_formats_and_kinds_block_nothing(allowed: Model) -> None:
    assert make_plan(project(allowed)).blockers == ()


def test_a_table_that_is_there_blocks_nothing() -> None:
    models = project(delta("SELECT 1 AS `c d`"))
    prod, loaded = promote(models)
    later = project(*models.values(), model("s.n", "SELECT `c d` FROM s.m"))

    assert make_plan(later, base=prod, loaded=loaded).blockers == ()
