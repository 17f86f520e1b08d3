"""Rules that are queries: what they find in a project, and the sentence that ends one that may not run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.catalog.tables import CatalogTables
from mergeplan.planner.checks.linter import Violation
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.session.queries.rules import find_violations
from tests.planner.project.test_loader import CONFIG, NOW, project_of

ORDERS = "MODEL (name shop.orders, kind FULL, owner ann, tags [core]{more});\nSELECT 1 AS id,\n 2.0D AS amount"
LINTER = "linter:\n  enabled: true\n  rules: ALL\n"
NESTED = ", ".join(f"a{i + 1} AS (SELECT p.x FROM a{i} AS p, a{i} AS q)" for i in range(30))
Find = Callable[..., tuple[Violation, ...]]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Finds what a query returns in a project of one model."""

    def find_in(query: str, linter: str = LINTER, more: str = "", **files: str) -> tuple[Violation, ...]:
        texts = {"config.yaml": CONFIG + linter, "models/orders.sql": ORDERS.replace("{more}", more), **files}
        project = load_project(project_of(tmp_path, {**texts, "linter/my_rule.sql": query}), NOW)
        return find_violations(CatalogTables(project))

    return find_in


def show(violation: Violation) -> str:
    return f"{violation.place}:{violation.place.column} {violation.rule}: {violation.message}"


def test_a_row_is_a_violation_at_its_model_with_the_first_comment_as_message(find: Find) -> None:
    (violation,) = find("-- A model has\n-- two owners.\nSELECT name AS model FROM models")

    assert show(violation) == "models/orders.sql:1:13 myrule: A model has two owners."
    assert violation.blocking


def test_a_row_with_a_column_is_a_violation_where_the_model_names_it(find: Find) -> None:
    (violation,) = find("SELECT model, name AS column, type AS message FROM columns WHERE name = 'amount'")

    assert show(violation) == "models/orders.sql:3:10 myrule: double"


def test_a_rule_in_warn_rules_warns_and_one_that_no_list_names_does_not_run(find: Find) -> None:
    query = "SELECT name AS model FROM models"
    warn = "linter: {enabled: true, warn_rules: [MyRule]}\n"

    assert [violation.blocking for violation in find(query, warn)] == [False]
    assert find(query, "linter: {enabled: true, rules: [noselectstar]}\n") == ()


def test_a_model_ignores_a_rule_that_is_a_query(find: Find) -> None:
    assert find("SELECT name AS model FROM models", more=", ignored_rules ['my_rule']") == ()


def test_a_list_of_the_catalog_is_read_by_json_each(find: Find) -> None:
    query = "SELECT name AS model, tag.value AS message FROM models, json_each(models.tags) AS tag"

    assert [violation.message for violation in find(query)] == ["core"]


def test_a_query_finds_no_plan_where_there_is_none(find: Find) -> None:
    assert find("SELECT model FROM changes") == ()


@pytest.mark.parametrize(
    ("query", "line", "message"),
    [
        ("DELETE FROM models", 1, "A rule is one SELECT over the tables of the catalog."),
        ("SELECT 'a' AS model; DELETE FROM models", 1, "A rule is one SELECT"),
        ("WITH a AS (SELECT 1) DELETE FROM models", 1, "A rule is one SELECT"),
        ("-- why\nATTACH 'other.db' AS other", 2, "A rule is one SELECT"),
        ("VACUUM INTO 'other.db'", 1, "A rule is one SELECT"),
        ("PRAGMA table_info(models)", 1, "A rule is one SELECT"),
        ("SELECT name AS model FROM pragma_table_info('models')", 1, "A rule is one SELECT"),
        ("SELECT load_extension('x') AS model", 1, "A rule is one SELECT"),
        ("SELECT sql AS model FROM sqlite_master", 1, "A rule is one SELECT"),
        ("", 1, "A rule is one SELECT"),
        ("SELECT\n  nme AS model\nFROM models", 2, "SQLite: no such column: nme."),
        ("SELECT name AS model\nFROM modls", 2, "SQLite: no such table: modls."),
        ("SELECT name\nFORM models", 2, 'SQLite: near "models": syntax error.'),
        ("SELECT name FROM models", 1, "returns no column `model`."),
        ("SELECT name AS model, '' AS mesage FROM models", 1, "returns a column `mesage`."),
        ("SELECT 'shop.x' AS model", 1, "returns `shop.x`, which is no model of the project."),
        ("SELECT NULL AS model", 1, "returns `None`, which is no model of the project."),
        ("SELECT zeroblob(9) AS model", 1, "It returns bytes: a cell is a text or a number."),
        ("SELECT zeroblob(1000000000) AS model", 1, "SQLite: string or blob too big."),
        (
            "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 20000) SELECT x AS model FROM r",
            1,
            "It returns more than 10,000 rows.",
        ),
    ],
)
def test_a_query_that_may_not_run_is_an_error_at_its_line(find: Find, query: str, line: int, message: str) -> None:
    with pytest.raises(ProjectError) as error:
        find(query)

    assert str(error.value.place) == f"linter/my_rule.sql:{line}"
    assert message in error.value.message


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT max(x) AS model FROM r",
        f"WITH a0 AS (SELECT 1 AS x), {NESTED} SELECT x AS model FROM a30",  # unfolded before a clock is looked at
    ],
)
def test_a_query_without_an_end_is_ended(find: Find, query: str) -> None:
    with pytest.raises(ProjectError, match=r"longer than|too much memory"):
        find(query)


def test_a_table_has_no_text_of_a_variable(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    linter = LINTER + "variables: {token: \"{{ env_var('TOKEN') }}\"}\n"
    files = {
        "models/b.sql": "MODEL (name shop.b, audits (not_null(columns := (x), condition := x <> @token)));\n"
        "SELECT @token AS x"
    }
    texts = {"models": "name || kind || owner || description", "audits": 'name || "column"', "columns": "name || type"}

    for table, text in texts.items():
        model = "name" if table == "models" else "model"
        violations = find(f"SELECT {model} AS model, {text} AS message FROM {table}", linter, **files)
        assert violations
        assert not any("s3cret" in violation.message for violation in violations)


def test_a_query_and_a_class_of_one_name_are_an_error(find: Find) -> None:
    with pytest.raises(ProjectError, match=r"There is a rule `myrule` in `linter/a.py` too"):
        find("SELECT name AS model FROM models", **{"linter/a.py": "class MyRule(Rule):\n    pass\n"})
