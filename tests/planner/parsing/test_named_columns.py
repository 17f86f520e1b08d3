"""Columns that a model names and its query does not return: the plan says so, before a table is built."""

from dataclasses import replace

import pytest

from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from tests.planner.building import make_plan, model, project, promote

QUERY = "SELECT id, DATE '2026-01-01' AS day FROM r.t"
KEYED = {"kind": Kind.INCREMENTAL_BY_UNIQUE_KEY, "unique_key": ("id",)}
WRONG = [
    (model("s.m", QUERY, Kind.INCREMENTAL_BY_TIME_RANGE, time_column="dt"), "has no column `dt`"),
    (model("s.m", QUERY, **KEYED | {"unique_key": ("lower(name)",)}), "has no column `name`"),
    (model("s.m", QUERY, **KEYED, merge_filter="source.price > 1"), "has no column `price`"),
    (model("s.m", QUERY, partitioned_by=("months(at)",)), "has no column `at`"),
    (model("s.m", QUERY, clustered_by=("name",)), "has no column `name`"),
    (model("s.m", QUERY, audits=(AuditCall("not_null", (("columns", "(id, name)"),)),)), "has no column `name`"),
    (replace(model("s.m", QUERY), columns=(Column("id", "int"),)), "does not declare the column `day`"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_a_plan_reports_every_model_that_names_a_column_which_its_query_lacks(wrong: Model, message: str) -> None:
    other = model("s.other", QUERY, partitioned_by=("country",))

    with pytest.raises(ProjectErrors) as raised:
        make_plan(project(wrong, other))

    assert f"models/s.m.sql:1: s.m {message}" in str(raised.value)
    assert "s.other has no column `country`. Return it from its query, or change `partitioned_by`." in str(raised.value)


def test_a_query_whose_columns_are_not_known_is_left_to_spark() -> None:
    unknown = model("s.m", "SELECT * FROM r.t", Kind.INCREMENTAL_BY_TIME_RANGE, time_column="dt")

    assert [change.name for change in make_plan(project(unknown)).changes] == ["s.m"]


def test_a_plan_leaves_audits_that_only_warn_and_those_over_expressions_to_the_run() -> None:
    warns = AuditCall("not_null_non_blocking", (("columns", "name"),))
    field = AuditCall("accepted_values", (("column", "address.city"), ("is_in", "('Bern')")))

    assert make_plan(project(model("s.m", QUERY, audits=(warns, field)))).changes


def test_a_plan_reports_an_audit_that_an_edit_adds_over_a_column_which_the_table_lacks() -> None:
    prod, loaded = promote(project(model("s.m", QUERY)))
    edited = model("s.m", QUERY, audits=(AuditCall("not_null", (("columns", "name"),)),))

    with pytest.raises(ProjectErrors, match=r"s\.m has no column `name`"):
        make_plan(project(edited), base=prod, loaded=loaded)
