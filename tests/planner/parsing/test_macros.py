"""Dates, variables, and nothing else, between `@` and the end of a name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.macros.expand import dates, expand, expand_block, expander, spark_tree
from mergeplan.planner.parsing.macros.expander import CALLS
from mergeplan.planner.parsing.sql.dates import end_instant, parse_instant
from mergeplan.planner.parsing.sql.macro_scope import MacroScope
from mergeplan.planner.parsing.sql.tokens import SourceText, parse_tokens, tokenize
from mergeplan.planner.parsing.sql.user_macros import MacroCall
from mergeplan.planner.project.loader import load_project
from tests.planner.project.test_loader import CONFIG, project_of

NOW = datetime(2024, 3, 31, 7, 8, tzinfo=UTC)
WEEK = Interval(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 8, tzinfo=UTC))


def spark(sql: str, **variables: object) -> str:
    """The SQL with its macros expanded."""
    source = SourceText("models/a.sql", sql, "spark")
    scope = MacroScope(variables, "main")  # type: ignore[arg-type]
    return parse_tokens(source, expand(source, tokenize(source), scope)).sql("spark")


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("start_ds", "'2020-01-01'"),
        ("end_ds", "'2020-01-07'"),
        ("start_date", "CAST('2020-01-01' AS DATE)"),
        ("end_date", "CAST('2020-01-07' AS DATE)"),
        ("start_ts", "'2020-01-01 00:00:00'"),
        ("end_ts", "'2020-01-07 23:59:59.999999'"),
        ("start_tstz", "'2020-01-01 00:00:00+00:00'"),
        ("end_dt", "CAST('2020-01-07 23:59:59.999999+00:00' AS TIMESTAMP)"),
        ("start_dtntz", "CAST('2020-01-01 00:00:00' AS TIMESTAMP_NTZ)"),
        ("start_epoch", "1577836800"),
        ("end_millis", "1578441599999"),
        ("end_hour", "23"),
        ("execution_ds", "'2024-03-31'"),
        ("execution_hour", "7"),
    ],
)
def test_dates_are_inclusive_at_both_ends(name: str, literal: str) -> None:
    assert dates(WEEK, NOW)[name].sql("spark") == literal


def test_without_an_interval_dates_are_valid_and_old() -> None:
    assert dates(None, NOW)["end_ts"].sql("spark") == "'1970-01-01 23:59:59.999999'"


def test_dates_stay_as_names_until_they_are_known() -> None:
    assert spark("SELECT x FROM a.b WHERE d BETWEEN @START_DS AND @latest_ds") == (
        "SELECT x FROM a.b WHERE d BETWEEN @start_ds AND @execution_ds"
    )


@pytest.mark.parametrize(
    ("value", "literal"),
    [("it's", "'it\\'s'"), (3, "3"), (-3, "(-3)"), (2.5, "2.5"), (True, "TRUE"), (None, "NULL"), ("@x", "'@x'")],
)
def test_a_variable_is_a_literal(value: object, literal: str) -> None:
    assert spark("SELECT @X AS y", x=value) == f"SELECT {literal} AS y"
    assert spark("SELECT @VAR('X') AS y", x=value) == f"SELECT {literal} AS y"


def test_an_unknown_variable_has_its_default_or_is_null() -> None:
    assert spark("SELECT @VAR('a', 1 + @b) AS y, @VAR('a') AS z", b=2) == "SELECT 1 + 2 AS y, NULL AS z"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_no_text_of_a_variable_escapes_its_quotes(text: str) -> None:
    tree = spark_tree(spark("SELECT @x AS y", x=text))

    assert isinstance(tree, exp.Select)
    assert [expression.this.this for expression in tree.expressions] == [text]


def test_an_unknown_macro_is_told_with_line_and_nearest() -> None:
    with pytest.raises(
        ProjectError, match=r"^models/a.sql:2: There is no macro or variable `@end_dat`. Did you mean `@end_date`\?"
    ):
        spark("SELECT x FROM a.b\nWHERE d = @end_dat")


def test_a_block_knows_variables_dates_and_named_crons() -> None:
    source = SourceText("models/a.sql", "MODEL (cron @daily, owner @who, start @nobody)", "spark")

    with pytest.raises(ProjectError, match=r"^models/a.sql:1: There is no macro or variable `@nobody`"):
        expand_block(source, tokenize(source), MacroScope({"who": "jen"}))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-31", "2024-01-31"),
        ("20240131", "2024-01-31"),
        ("2024-01-31T06:00:00+02:00", "2024-01-31 04:00"),
        ("yesterday", "2024-03-30"),
        ("2 days ago", "2024-03-29"),
        ("1 week ago", "2024-03-24"),
        ("1 month ago", "2024-02-29"),
        ("1 year ago", "2023-03-31"),
        ("3 hours ago", "2024-03-31 04:08"),
        ("1704067200000", "2024-01-01"),
    ],
)
def test_dates_are_read_as_people_write_them(text: str, moment: str) -> None:
    assert parse_instant(text, NOW) == datetime.fromisoformat(moment).replace(tzinfo=UTC)


def test_a_day_as_an_end_includes_itself() -> None:
    assert end_instant("2024-01-31", NOW) == datetime(2024, 2, 1, tzinfo=UTC)
    assert end_instant("2024-01-31 06:00:00", NOW) == datetime(2024, 1, 31, 6, tzinfo=UTC)


@pytest.mark.parametrize("text", ["soon", "", "2024-13-01", "9999 years ago", "99999999999999 days ago"])
def test_what_is_no_date_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a date|before the year 1"):
        parse_instant(text, NOW)


class Greeting:
    """A project's own macros: one that greets, and one that gives the columns it is told."""

    names = frozenset({"greet", "all_of"})

    def call(self, call: MacroCall) -> tuple[str, ...]:
        if call.name == "greet":
            return (f"CONCAT('hello ', {call.arguments[0]}, @n)",)
        return tuple(f"MAX({name}) AS {name}_{kind}" for name, kind in call.columns[call.arguments[0]])


def test_a_macro_of_the_projects_own_gets_sql_and_gives_sql() -> None:
    scope = MacroScope({"n": 3}, macros=Greeting(), columns={"s.a": {"x": "int", "y": "date"}}.get)
    source = SourceText("models/a.sql", "SELECT @greet(@EACH([a], x -> @x)), @all_of(s.a) FROM s.a", "spark")

    told = parse_tokens(source, expand(source, tokenize(source), scope)).sql("spark")

    assert told == "SELECT CONCAT('hello ', a, 3), MAX(x) AS x_int, MAX(y) AS y_date FROM s.a"


@pytest.mark.parametrize(
    ("sql", "rendered"),
    [
        ("@DEF(x, a + b); SELECT @x * 2 AS y FROM s.a", "SELECT (a + b) * 2 AS y FROM s.a"),
        ("@DEF(x, a - b); SELECT c - @x AS y FROM s.a", "SELECT c - (a - b) AS y FROM s.a"),
        ("@DEF(x, a OR b); SELECT a FROM s.a WHERE NOT @x", "SELECT a FROM s.a WHERE NOT (a OR b)"),
        ("@DEF(f, x -> x * 2); SELECT @f(1 + 2) AS y", "SELECT (1 + 2) * 2 AS y"),
    ],
)
def test_what_a_macro_gives_is_not_torn_apart(sql: str, rendered: str) -> None:
    model, _ = parse_model(f"MODEL (name s.m);\n{sql}", "m.sql", Defaults(NOW))

    assert model is not None
    assert model.sql == rendered


@pytest.mark.parametrize("dialect", ["duckdb", "snowflake", "bigquery", "postgres"])
def test_macros_work_in_every_dialect(dialect: str) -> None:
    sql = "SELECT @EACH(['1', '2'], x -> CAST(a AS VARCHAR) || x AS c_@x), @start_ds AS d FROM s.a"
    model, _ = parse_model(f"MODEL (name s.m, dialect {dialect});\n{sql}", "m.sql", Defaults(NOW))

    assert model is not None
    assert (
        model.sql == "SELECT CAST(a AS STRING) || '1' AS c_1, CAST(a AS STRING) || '2' AS c_2, @start_ds AS d FROM s.a"
    )


def test_models_are_read_in_the_order_in_which_macros_need_columns(tmp_path: Path) -> None:
    model = "MODEL (name s.{}, kind FULL);\nSELECT @STAR(s.{}), 1 AS {} FROM s.{}"
    files = {f"models/{a}.sql": model.format(a, b, a, b) for a, b in (("a", "b"), ("b", "c"))}
    files["models/c.sql"] = "MODEL (name s.c, kind FULL);\nSELECT * FROM raw.x"
    files["external_models.yaml"] = "- name: raw.x\n  columns: {x: int}\n"

    models = load_project(project_of(tmp_path, files), NOW).models

    assert models["s.a"].sql == ("SELECT CAST(`b`.`x` AS INT) AS `x`, CAST(`b`.`b` AS INT) AS `b`, 1 AS a FROM s.b")


def test_20_000_blueprints_are_refused_at_their_line(tmp_path: Path) -> None:
    names = ", ".join(f"(t := t{number})" for number in range(20_000))
    text = f"MODEL (name @{{t}}.m, kind FULL,\nblueprints ({names}));\nSELECT 1 AS a"

    with pytest.raises(ProjectError) as caught:
        load_project(project_of(tmp_path, {"models/m.sql": text}), NOW)

    assert (str(caught.value.place), caught.value.message) == (
        "models/m.sql:2", "`blueprints` lists 20,000 models, and a file may have 2,000.",
    )  # fmt: skip


def test_a_blueprint_is_a_model_of_its_own(tmp_path: Path) -> None:
    text = "MODEL (name @{t}.m, kind FULL, blueprints @EACH([red, blue], x -> (t := x, c := 1)));\nSELECT @c AS @{t}_x"

    models = load_project(project_of(tmp_path, {"models/m.sql": text}), NOW).models

    assert {name: model.sql for name, model in models.items()} == {
        "red.m": "SELECT 1 AS red_x",
        "blue.m": "SELECT 1 AS blue_x",
    }


def test_variables_stand_in_quoted_names_and_other_names_with_an_at_stay(tmp_path: Path) -> None:
    text = "MODEL (name s.m, kind FULL);\nSELECT t.`it@home`, `me-@where` FROM `@raw`.`@{raw}_orders` AS t"
    files = {"config.yaml": CONFIG + "variables: {raw: landing, where: here}\n", "models/m.sql": text}

    model = load_project(project_of(tmp_path, files), NOW).models["s.m"]

    assert model.depends_on == ("landing.landing_orders",)
    assert model.written.text == "SELECT t.`it@home`, `me-here` FROM `landing`.`landing_orders` AS t"


def test_jinja_macros_call_each_other_and_variables(tmp_path: Path) -> None:
    files = {
        "config.yaml": CONFIG + "variables: {n: 3}\n",
        "macros/a.sql": "{% macro one(x) %}{{ x }} * {{ var('n') }}{% endmacro %}",
        "macros/b.sql": "{% macro two(x) %}{{ one(x) }} + 1{% endmacro %}",
        "models/m.sql": "MODEL (name s.m);\nJINJA_QUERY_BEGIN;\nSELECT {{ two('a') }} AS it FROM s.a\nJINJA_END;",
    }

    assert load_project(project_of(tmp_path, files), NOW).models["s.m"].sql == "SELECT a * 3 + 1 AS it FROM s.a"


def test_macros_that_call_each_other_too_often_are_ended() -> None:
    source = SourceText("models/a.sql", "SELECT @EACH([1, 2, 3], x -> x)", "spark")
    room = replace(expander(source, MacroScope()), spent=[CALLS])

    with pytest.raises(ProjectError, match=r"^models/a.sql:1: The macros of this file call each other more than 50000"):
        room.run(tokenize(source))


def test_star_over_a_history_has_the_columns_that_the_history_adds(tmp_path: Path) -> None:
    files = {
        "models/a.sql": "MODEL (name s.a, kind FULL);\nSELECT 1 AS id, 2 AS n",
        "models/past.sql": "MODEL (name s.past, kind SCD_TYPE_2 (unique_key id));\nSELECT id, n AS updated_at FROM s.a",
        "models/t.sql": "MODEL (name s.t, kind FULL);\nSELECT @STAR(s.past) FROM s.past",
    }

    sql = load_project(project_of(tmp_path, files), NOW).models["s.t"].sql

    assert "`valid_from`" in sql
    assert "`valid_to`" in sql
