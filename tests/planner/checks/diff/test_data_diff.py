"""The budget of a data diff, and what of samples is readable."""

from __future__ import annotations

import threading

import pytest

from mergeplan.planner.checks.diff.data_diff import Budget, key_of, mask_samples, nullability
from mergeplan.planner.checks.diff.row_condition import row_condition
from mergeplan.planner.checks.diff.table_diff import Samples
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import Cancelled, RequestError
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings

SLOW = "SELECT COUNT(*) FROM RANGE(1000000000000) AS a WHERE SIN(id) > 2"


def refuse_to_go_on() -> None:
    raise Cancelled("the run was cancelled.")


def model(*audits: AuditCall, **fields: object) -> Model:
    return replace_settings(Model("a.b", Kind.FULL, "b.sql", 1, ""), {"audits": audits, **fields})


@pytest.mark.parametrize("begun_after", [0.0, 0.6])
def test_what_runs_when_the_time_is_up_is_cancelled_and_spark_goes_on(engine: Engine, begun_after: float) -> None:
    budget = Budget(engine, 0.3, 10, lambda: None)

    with pytest.raises(TimeoutError), budget.enforce():
        threading.Event().wait(begun_after)  # between two statements, nothing runs when the time is up
        engine.fetch(SLOW)
    assert budget.is_spent
    assert engine.fetch("SELECT 1 AS one").rows == ((1,),)


def test_who_ends_the_run_ends_it_and_not_the_comparison_alone(engine: Engine) -> None:
    budget = Budget(engine, 0.3, 10, refuse_to_go_on)

    with pytest.raises(Cancelled, match="the run was cancelled"), budget.enforce():
        engine.fetch(SLOW)


def test_a_sample_is_masked_but_for_the_columns_that_are_named() -> None:
    """Behaviour 15: whatever a column is called; only changed rows have names for both sides."""
    changed = Rows(("id", "s__mail", "t__mail", "s__t__id"), ((7, "ann@x.io", None, "secret"),))
    only = Rows(("id", "mail", "s__id"), ((7, "ann@x.io", "secret"),))
    masked = mask_samples(Samples(changed, only, only), ("id",), frozenset({"id"}))

    assert masked.changed.rows == ((7, "a*** (8)", None, "s*** (6)"),)
    assert masked.only_first == masked.only_second == Rows(only.columns, ((7, "a*** (8)", "s*** (6)"),))
    assert mask_samples(Samples(changed), ("id",), frozenset({"mail"})).changed.rows[0][:2] == ("#", "ann@x.io")


def test_a_key_is_the_grain_or_the_unique_key_as_far_as_both_tables_have_it() -> None:
    assert key_of(model(grain=("id",), unique_key=("a",)), {"id", "a"}) == (("id",), "")
    assert key_of(model(grain=("id",), unique_key=("`A`",)), {"a"}) == (("a",), "")
    assert key_of(model(unique_key=("a",), delete_insert=True), {"a"}) == (
        (),
        "whole rows: no `grain` is declared",
    )
    assert key_of(model(unique_key=("lower(a)",)), {"a"}) == ((), "whole rows: a key's column differs")
    assert key_of(model(), {"a"}) == ((), "whole rows: no `grain` is declared")


def test_a_column_may_hold_nulls_where_no_blocking_audit_forbids_it() -> None:
    guards, warns = (AuditCall("not_null", (("columns", "(a, b)"),), blocking=blocking) for blocking in (None, False))

    assert [(column.column, column.nullable) for column in nullability(model(guards), model(warns))] == [
        ("a", True), ("b", True),
    ]  # fmt: skip
    assert nullability(model(guards), model(guards)) == ()


@pytest.mark.parametrize("text", ["(" * 900 + "a = 1" + ")" * 900, "NOT " * 450 + "a = 1", "a" + " + a" * 480 + " = 1"])
def test_no_condition_is_too_deep_to_be_judged(text: str) -> None:
    try:
        assert row_condition(text, ["a"])
    except RequestError as error:
        assert "condition" in error.message
