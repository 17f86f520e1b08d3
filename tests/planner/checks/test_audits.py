"""Audits find exactly the bad rows, in the stretch that was written, in one query."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mergeplan.planner.checks.audits import (
    AuditContext,
    AuditResult,
    audit_query,
    is_blocking,
    read_by_audits,
    run_audit,
)
from mergeplan.planner.engine.protocol import Engine, Rows, ViewText
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.parsing.definitions.audits.audits import parse_audits
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model

NOW = datetime(2024, 5, 6, tzinfo=UTC)
DAY = Interval(datetime(2020, 1, 2, tzinfo=UTC), datetime(2020, 1, 3, tzinfo=UTC))
ROWS = """(VALUES (1, 'a', DATE'2020-01-01'), (2, 'a', DATE'2020-01-02'), (2, NULL, DATE'2020-01-02'),
    (3, '', DATE'2020-01-03'))"""
TABLE = "audited.rows"
RANGE = "kind INCREMENTAL_BY_TIME_RANGE (time_column d)"


def model_of(audits: str, kind: str = "kind FULL") -> Model:
    model, _ = parse_model(f"MODEL (name shop.a, {kind}, audits ({audits}));\nSELECT 1 AS id", "a.sql", Defaults(NOW))
    assert model is not None
    return model


@pytest.fixture
def table(engine: Engine) -> str:
    engine.catalog.swap_view(ViewText(TABLE, f"SELECT * FROM {ROWS} AS t(id, name, d)"))
    return TABLE


def run(engine: Engine, audit: str, kind: str = "kind FULL", own: str = "") -> AuditResult:
    model = model_of(audit, kind)
    audits = {audit.name: audit for audit in parse_audits(own, "b.sql", Defaults(NOW))} if own else {}
    return run_audit(engine, model, model.checks.audits[0], TABLE, DAY, AuditContext(audits, samples="full"))


@pytest.mark.parametrize(
    ("audit", "count"),
    [
        ("not_null(columns := (id, d))", 0),
        ("not_null(columns := (id, name))", 1),
        ("not_null(columns := name, condition := id <> 2)", 0),
        ("unique_values(columns := id)", 1),
        ("unique_values(columns := (id, name))", 2),
        ("unique_combination_of_columns(columns := (id, name))", 0),
        ("accepted_values(column := name, is_in := ('a', 'b'))", 1),
        ("not_accepted_values(column := name, is_in := ('a'))", 2),
        ("accepted_range(column := id, min_v := 1, max_v := 2)", 1),
        ("accepted_range(column := id, min_v := 1, inclusive := false)", 1),
        ("not_empty_string(column := name)", 1),
        ("at_least_one(column := name)", 0),
        ("forall(criteria := (id > 0, id < 3))", 1),
        ("number_of_rows(threshold := 3)", 0),
        ("number_of_rows(threshold := 4)", 1),
        ("number_of_rows_non_blocking(threshold := 4)", 1),
    ],
)
def test_built_in_audits_count_the_bad_rows(engine: Engine, table: str, audit: str, count: int) -> None:
    assert run(engine, audit).count == count


def test_a_sample_shows_the_rows_as_they_are(engine: Engine, table: str) -> None:
    result = run(engine, "not_null(columns := name)")

    assert (result.count, result.blocking, result.ok) == (1, True, False)
    assert result.sample == Rows(("id", "name", "d"), ((2, None, datetime(2020, 1, 2).date()),))
    assert run(engine, "not_null(columns := id)").sample == Rows(("id", "name", "d"), ())


def test_a_sample_has_at_most_five_rows_and_the_count_is_whole(engine: Engine, table: str) -> None:
    result = run(engine, "many", own="AUDIT (name many);\nSELECT t.* FROM @this_model AS t CROSS JOIN RANGE(1000)")

    assert result.count == 4000
    assert len(result.sample.rows) == 5


def test_a_time_range_is_audited_where_it_was_written(engine: Engine, table: str) -> None:
    assert run(engine, "number_of_rows(threshold := 1)", RANGE).count == 0
    assert run(engine, "number_of_rows(threshold := 2)", RANGE).count == 1
    assert run(engine, "forall(criteria := id < 3)", RANGE).ok


def test_an_audit_of_the_project_has_parameters_and_dates(engine: Engine, table: str) -> None:
    query = "SELECT * FROM @this_model WHERE id < @least AND d < @days"
    own = f"AUDIT (name low, defaults (least = 2, days = @start_ds));\n{query}"

    assert run(engine, "low", own=own).count == 1
    assert run(engine, "low(least := 1)", own=own).count == 0
    assert run(engine, "two", own="AUDIT (name two);\nSELECT @this_model.id FROM @this_model WHERE id = 2").count == 2


def test_an_audit_may_read_other_models() -> None:
    model = model_of("more")
    audits = {"more": parse_audits("AUDIT (name more);\nSELECT * FROM shop.b JOIN shop.a", "b.sql", Defaults(NOW))[0]}

    options = AuditContext(audits, {"shop.b": "p.b__1", "shop.a": "p.a__0"})
    sql = audit_query(model, model.checks.audits[0], "p.a__1", None, options)

    assert sql == "SELECT * FROM p.b__1 AS b JOIN p.a__1 AS a"


REFERENCE = """AUDIT (name refers, defaults (key = id));
SELECT t.@column FROM @this_model AS t
WHERE NOT EXISTS (SELECT 1 FROM @source AS s WHERE s.@key = t.@column) AND @column > 0"""


def test_the_parameters_of_an_audit_may_stand_for_tables_and_columns() -> None:
    model = model_of("refers(column := item_id, source := shop.b)")
    audits = {"refers": parse_audits(REFERENCE, "b.sql", Defaults(NOW))[0]}

    sql = audit_query(model, model.checks.audits[0], "p.a__1", None, AuditContext(audits, {"shop.b": "p.b__1"}))

    assert sql == (
        "SELECT t.item_id FROM (SELECT * FROM p.a__1) AS t\nWHERE NOT EXISTS (SELECT 1 FROM p.b__1 AS s"
        " WHERE s.id = t.item_id) AND (item_id) > 0"
    )
    assert read_by_audits(model, audits) == {"shop.b"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("refers(column := item_id + 1, source := shop.b)", "`@column` stands for the name of a column."),
        ("refers(column := s.item_id, source := shop.b)", "`@column` stands for the name of a column."),
        ("refers(column := item_id, source := 'shop.b')", "`@source` stands for the name of a table."),
    ],
)
def test_an_argument_that_is_no_name_is_refused_where_a_name_is_wanted(call: str, message: str) -> None:
    model, audits = model_of(call), {"refers": parse_audits(REFERENCE, "b.sql", Defaults(NOW))[0]}

    with pytest.raises(ProjectError, match=r"^a.sql:1: The audit `refers`: ") as refused:
        audit_query(model, model.checks.audits[0], "p.a__1", None, AuditContext(audits))

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("SELECT FLOOR(LOG10(@this_model.id)) FROM @this_model WHERE id > @least",
         "SELECT FLOOR(LOG10(this_model.id)) FROM {} AS this_model WHERE id > (id + 1)"),
        ("SELECT * FROM @this_model t WHERE to_date(s, 'yyyy-MM-dd') < @start_date",
         "SELECT * FROM {} t WHERE to_date(s, 'yyyy-MM-dd') < CAST('2020-01-02' AS DATE)"),
        ("SELECT GET_JSON_OBJECT(s, 'f') FROM @this_model TABLESAMPLE (5 ROWS)",
         "SELECT GET_JSON_OBJECT(s, 'f') FROM {} TABLESAMPLE (5 ROWS) AS this_model"),
        ("SELECT a, FROM shop.a WHERE '@this_model' = s",
         "SELECT a  FROM p.a__1 AS a WHERE '@this_model' = s"),
    ],
)  # fmt: skip
def test_an_audit_asks_what_is_written(query: str, runs: str) -> None:
    model = model_of("more")
    audits = {audit.name: audit for audit in parse_audits(f"AUDIT (name more);\n{query}", "b.sql", Defaults(NOW))}
    call = (
        replace(model.checks.audits[0], arguments=(("least", "id + 1"),))
        if "@least" in query
        else model.checks.audits[0]
    )

    assert audit_query(model, call, "p.a__1", DAY, AuditContext(audits)) == runs.format("(SELECT * FROM p.a__1)")


def test_an_edit_of_an_audit_that_the_parser_does_not_see_is_another_question() -> None:
    one, other = (
        parse_audits(f"AUDIT (name a);\nSELECT {literal} AS v FROM @this_model", "b.sql", Defaults(NOW))[0]
        for literal in ("TIME '10:00:00'", "TIMESTAMP '10:00:00'")
    )

    assert one.sql == other.sql
    assert one.misread != other.misread


def test_a_time_column_of_text_is_read_by_its_format() -> None:
    model = replace_settings(model_of("not_null(columns := id)", RANGE), {"time_format": "dd/MM/yyyy"})

    assert "TO_TIMESTAMP(`d`, 'dd/MM/yyyy') >= CAST('2020-01-02 00:00:00' AS TIMESTAMP)" in audit_query(
        model, model.checks.audits[0], TABLE, DAY
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (AuditCall("not_null"), True),
        (AuditCall("not_null_non_blocking"), False),
        (AuditCall("not_null", (), False), False),
        (AuditCall("soft"), False),
        (AuditCall("soft", (), True), True),
    ],
)
def test_the_call_then_the_audit_says_whether_it_blocks(call: AuditCall, said: bool) -> None:
    audits = {"soft": parse_audits("AUDIT (name soft, blocking false);\nSELECT 1", "b.sql", Defaults(NOW))[0]}

    assert is_blocking(call, audits) is said


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ("not_null", "The audit `not_null` needs the argument `columns`."),
        ("not_null(columns := 'a')", "The audit `not_null`: `columns` must be a column or columns"),
        ("number_of_rows(threshold := x)", "The audit `number_of_rows`: `threshold` must be a number, not `x`."),
        ("accepted_range(column := x)", "The audit `accepted_range`: `min_v` or `max_v` is needed."),
    ],
)
def test_wrong_arguments_are_told_at_the_model(audit: str, message: str) -> None:
    model = model_of(audit)

    with pytest.raises(ProjectError) as error:
        audit_query(model, model.checks.audits[0], TABLE, None)

    assert str(error.value).startswith(f"a.sql:1: {message}")


def test_an_audit_that_spark_refuses_is_told_at_the_model(engine: Engine, table: str) -> None:
    with pytest.raises(QueryError) as error:
        run(engine, "not_null(columns := nope)")

    assert str(error.value.place) == "a.sql:1"
