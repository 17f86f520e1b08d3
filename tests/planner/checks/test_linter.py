"""The linter's rules, case by case: what breaks which rule, at which line and column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mergeplan.planner.checks.linter import CHECKS, LintedProject, Violation, lint
from mergeplan.planner.parsing.files.lint_config import BUILT_IN
from mergeplan.planner.project.loader import load_project
from tests.planner.casebook import cases
from tests.planner.project.test_loader import CONFIG, NOW, project_of

LINTER = CONFIG + "linter:\n  enabled: true\n  rules: {rules}\n"
SURE = ("ambiguousorinvalidcolumn", "invalidselectstarexpansion", "noambiguousprojections")
BASE = {
    "models/a.sql": "MODEL (name shop.a, kind FULL);\nSELECT 1 AS id, 2 AS n",
    "models/b.sql": "MODEL (name shop.b, kind FULL);\nSELECT 1 AS id, 3 AS m",
}


PAST = "MODEL (name shop.past, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *));\nSELECT id, n FROM shop.a"


def run_lint(root: Path, rules: str, sql: str, head: str = "kind FULL", **more: str) -> tuple[Violation, ...]:
    """What `shop.x` breaks of these rules."""
    files = {**BASE, "config.yaml": LINTER.format(rules=rules), "models/x.sql": f"MODEL (name shop.x, {head});\n{sql}"}
    project = load_project(project_of(root, {**files, **more}), NOW)
    return lint(project, ["shop.x"])


CASES = [
    ("noselectstar", "SELECT *\nFROM shop.a", "2:8 the outermost SELECT uses `*`: name its columns."),
    ("NoSelectStar", "WITH c AS (SELECT * FROM shop.a) SELECT id, c.* FROM c", "2:45 the outermost"),
    ("no_select_star", "WITH c AS (SELECT * FROM shop.a) SELECT id FROM c", ""),
    ("noselectstar", "SELECT count(*) AS n FROM shop.a", ""),
    ("invalidselectstarexpansion", "SELECT * FROM shop.a", ""),
    (
        "invalidselectstarexpansion",
        "SELECT * FROM raw.t",
        "2:8 `*` cannot be expanded: the columns of `raw.t` are not known.",
    ),
    (
        "ambiguousorinvalidcolumn",
        "SELECT n,\n id FROM shop.a JOIN shop.b ON a.id = b.id",
        "3:2 `id` is ambiguous: `a` and `b` have it. Qualify it with the table.",
    ),
    ("ambiguousorinvalidcolumn", "SELECT id FROM shop.a JOIN shop.b USING (id)", ""),
    (
        "ambiguousorinvalidcolumn",
        "WITH c AS (SELECT id FROM shop.b), d AS (SELECT id FROM c) SELECT id FROM shop.a",
        "",
    ),
    ("ambiguousorinvalidcolumn", "SELECT id FROM shop.a LEFT SEMI JOIN shop.b ON a.id = b.id", ""),
    ("ambiguousorinvalidcolumn", "SELECT a.id FROM shop.a JOIN shop.b ON a.id = b.id ORDER BY id", ""),
    ("ambiguousorinvalidcolumn", "SELECT n FROM shop.a WHERE EXISTS (SELECT 1 FROM shop.b WHERE id = n)", ""),
    ("ambiguousorinvalidcolumn", "SELECT id FROM raw.s JOIN raw.t ON s.id = t.id", ""),
    (
        "ambiguousorinvalidcolumn",
        "SELECT zz FROM shop.a",
        "2:8 no table that `shop.x` reads has a column `zz`.",
    ),
    ("noambiguousprojections", "SELECT 1 + 1, id FROM shop.a", "2:8 the output `1 + 1` has no name: add `AS ...`."),
    ("noambiguousprojections", "SELECT id, n AS id FROM shop.a", "2:12 two output columns are named `id`."),
    ("noambiguousprojections", "SELECT CAST(id AS STRING), * FROM shop.a", ""),
    (
        "nomissingexternalmodels",
        "SELECT id FROM raw.t",
        "2:16 `raw.t` is neither a model nor declared in external_models.yaml.",
    ),
    ("nomissingaudits", "SELECT 1 AS id", "1:13 `shop.x` has no audits."),
    ("nomissingunittest", "SELECT 1 AS id", "1:13 `shop.x` has no unit test in tests/."),
    ("nomissingowner", "SELECT 1 AS id", "1:13 `shop.x` has no owner."),
    ("nomissingdescription", "SELECT 1 AS id", "1:13 `shop.x` has no description."),
    (
        "nojoinwithoutcondition",
        "SELECT a.id FROM shop.a JOIN shop.b",
        "2:35 the join with `b` has no condition: add ON or USING, or write CROSS JOIN.",
    ),
    ("nojoinwithoutcondition", "SELECT a.id FROM shop.a CROSS JOIN shop.b, shop.a AS c NATURAL JOIN shop.a AS d", ""),
]


@pytest.mark.parametrize(("rule", "sql", "told"), CASES)
def test_a_broken_rule_is_told_at_its_line_and_column(rule: str, sql: str, told: str, tmp_path: Path) -> None:
    violations = run_lint(tmp_path, f"[{rule}]", sql)

    assert len(violations) == bool(told)
    for violation in violations:
        assert f"{violation.place.line}:{violation.place.column} {violation.message}".startswith(told)
        assert (violation.rule, violation.model, violation.place.path) == (
            rule.lower().replace("_", ""),
            "shop.x",
            "models/x.sql",
        )


def test_every_column_that_no_table_has_is_named_and_not_the_first_alone(tmp_path: Path) -> None:
    query = "SELECT zz,\n n AS id\nFROM shop.a WHERE yy > 1"
    violations = run_lint(tmp_path, "ambiguousorinvalidcolumn", query)

    places = [(violation.place.line, violation.message.partition("column ")[2][:4]) for violation in violations]
    assert places == [(2, "`zz`"), (4, "`yy`")]


@pytest.mark.parametrize("query", ["SELECT yy", "WITH c AS (SELECT 1 AS id) SELECT yy FROM c"])
def test_a_column_that_is_missing_without_any_table_is_named_once(query: str, tmp_path: Path) -> None:
    assert len(run_lint(tmp_path, "ambiguousorinvalidcolumn", query)) == 1


def test_a_model_due_more_often_than_what_it_reads_is_told_at_its_cron(tmp_path: Path) -> None:
    violations = run_lint(tmp_path, "CronIntervalAlignment", "SELECT id FROM shop.a", "kind FULL,\n cron '@hourly'")

    assert [violation.message for violation in violations] == [
        "`shop.a`, which it reads, is due less often (`@daily`) than it (`@hourly`)."
    ]
    assert violations[0].place.line == 2


def test_every_rule_has_its_check_and_each_check_is_a_rule() -> None:
    assert CHECKS.keys() | {"refusedmodel"} == BUILT_IN.keys()


def test_all_are_those_that_sqlmesh_has_and_a_model_may_ignore_some_or_all(tmp_path: Path) -> None:
    every = {violation.rule for violation in run_lint(tmp_path, "ALL", "SELECT * FROM raw.t")}
    some = run_lint(
        tmp_path, "ALL", "SELECT * FROM raw.t", "kind FULL, ignored_rules ['NoSelectStar', nomissingaudits]"
    )
    none = run_lint(tmp_path, "ALL", "SELECT * FROM raw.t", 'kind FULL, ignored_rules "ALL"')

    assert every >= {"noselectstar", "invalidselectstarexpansion", "nomissingaudits", "nomissingexternalmodels"}
    assert "nomissingowner" not in every
    assert every - {violation.rule for violation in some} == {"noselectstar", "nomissingaudits"}
    assert none == ()


def test_nothing_is_looked_at_unless_the_linter_is_enabled(tmp_path: Path) -> None:
    config = LINTER.format(rules="ALL").replace("true", "false")

    assert run_lint(tmp_path, "ALL", "SELECT * FROM raw.t", **{"config.yaml": config}) == ()


def test_no_query_of_the_case_book_which_all_run_on_spark_is_told_to_be_wrong() -> None:
    told, seen = [], set[str]()
    for case in cases()[::8]:
        linted = LintedProject(SimpleNamespace(models=case.after, tests=()))  # type: ignore[arg-type]  # no more is looked at
        fresh = [model for model in case.after.values() if model.sql not in seen]
        told += [violation for model in fresh for rule in SURE for violation in CHECKS[rule](linted, model)]
        seen |= {model.sql for model in fresh}

    assert len(seen) > 100
    assert told == []


def test_the_columns_that_a_history_adds_are_columns(tmp_path: Path) -> None:
    sql = "SELECT id, valid_from FROM shop.past WHERE valid_to IS NULL"

    assert not run_lint(tmp_path, "ambiguousorinvalidcolumn", sql, **{"models/past.sql": PAST})


def test_an_outer_tables_owner_is_the_defaults_one(tmp_path: Path) -> None:
    config = CONFIG + "model_defaults: {owner: ann}\n"
    files = {"config.yaml": config, "external_models.yaml": "- name: raw.t\n"}

    assert load_project(project_of(tmp_path, files), NOW).models["raw.t"].metadata.owner == "ann"


MISSPELLED = {"shop.order": "shop.orders", "shpo.orders": "shop.orders", "raw.order": "", "shop2.orders": ""}


@pytest.mark.parametrize(("read", "near"), MISSPELLED.items())
def test_a_table_called_almost_like_a_model_warns_without_a_linter(tmp_path: Path, read: str, near: str) -> None:
    files = {
        "models/orders.sql": "MODEL (name shop.orders);\nSELECT 1 AS id",
        "models/a.sql": f"MODEL (name mart.a);\nSELECT id\nFROM {read}",
    }

    violations = lint(load_project(project_of(tmp_path, files), NOW))

    message = f"`{read}` is neither a model nor declared in external_models.yaml. Did you mean `{near}`?"
    assert [(violation.message, violation.place.line, violation.blocking) for violation in violations] == (
        [(message, 3, False)] if near else []
    )


def test_the_nearest_of_several_models_is_named_and_never_the_reader_itself(tmp_path: Path) -> None:
    names = ("raw_customers", "customers", "customer_totals")
    files = {f"models/{name}.sql": f"MODEL (name shop.{name});\nSELECT 1 AS id" for name in names}
    files["models/customers.sql"] = "MODEL (name shop.customers);\nSELECT id FROM shop.raw_custmers"

    (violation,) = lint(load_project(project_of(tmp_path, files), NOW))

    assert violation.message.endswith("Did you mean `shop.raw_customers`?")


def test_a_source_of_dbt_without_columns_is_called_as_it_is_on_purpose(tmp_path: Path) -> None:
    sql = {"orders": "MODEL (name raw.orders);\nSELECT 1 AS id", "a": "MODEL (name mart.a);\nSELECT id FROM raw.order"}
    config = CONFIG + "linter: {enabled: true, warn_rules: [nomissingexternalmodels]}\n"
    files = {f"models/{name}.sql": text for name, text in sql.items()} | {"config.yaml": config}
    project = replace(load_project(project_of(tmp_path, files), NOW), is_dbt=True)

    undefined, defined = lint(project), lint(replace(project, dbt_sources=frozenset({"raw.order"})))

    assert "`raw.order` is neither a model nor a source of dbt. Did you mean `raw.orders`?" in undefined[0].message
    assert [violation.rule for violation in undefined] == ["misspelledtable", "nomissingexternalmodels"]
    assert not defined


READERS = {"kind FULL": 1, "kind FULL, end '2024-01-31'": 0, "kind FULL, end '2024-02-01'": 1, "kind VIEW": 0}


@pytest.mark.parametrize(("head", "count"), READERS.items())
def test_a_table_that_reads_one_with_an_end_warns_that_it_ends_there_too(tmp_path: Path, head: str, count: int) -> None:
    files = {
        "models/old.sql": "MODEL (name shop.old, kind FULL, end '2024-01-31');\nSELECT 1 AS id",
        "models/view.sql": "MODEL (name shop.view, kind VIEW);\nSELECT id FROM shop.old",
        "models/a.sql": f"MODEL (name mart.a, {head});\nSELECT id\nFROM shop.view",
    }

    violations = lint(load_project(project_of(tmp_path, files), NOW))

    message = "`shop.old`, which it reads, has an `end`, and no row past it comes into `mart.a`."
    warning = ("mart.a", message, 3, False)
    assert [(v.model, v.message.partition(" Give")[0], v.place.line, v.blocking) for v in violations] == [
        warning
    ] * count
