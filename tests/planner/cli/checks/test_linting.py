"""lint from outside, and what it does to a plan: neither starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.cli.conftest import CommandLine

STAR = "MODEL (name shop.star, kind FULL);\nSELECT * FROM sqlmesh_example.full_model\n"
INVALID = "\nlinter:\n  enabled: true\n  rules: [ambiguousorinvalidcolumn]\n"
RULES = "\nlinter:\n  enabled: true\n  {key}: [noselectstar]\n"


@pytest.fixture
def star_project(offline: CommandLine) -> CommandLine:
    """`mergeplan` in the example, with a model that says `SELECT *`."""
    write_project(offline.root, Wishes())
    offline.write("models/star.sql", STAR)
    config = (offline.root / "config.yaml").read_text()
    offline.write("config.yaml", config.partition("# --- Linting")[0])
    return offline


def rule(shell: CommandLine, key: str) -> None:
    shell.write("config.yaml", (shell.root / "config.yaml").read_text() + RULES.format(key=key))


def test_a_broken_rule_is_an_error_with_its_place_and_exit_code_1(star_project: CommandLine) -> None:
    rule(star_project, "rules")

    ran = star_project("lint")

    place = "models/star.sql:2:8: noselectstar"
    assert (ran.code, ran.err) == (1, "")
    assert (
        ran.out
        == f"Error: {place}: the outermost SELECT uses `*`: name its columns.\n4 models opened. 1 error, 0 warnings.\n"
    )


def test_a_property_that_names_no_column_of_the_query_is_an_error_at_its_line(star_project: CommandLine) -> None:
    star_project.write("config.yaml", (star_project.root / "config.yaml").read_text() + INVALID)
    header = "name shop.late, kind INCREMENTAL_BY_TIME_RANGE (time_column dt)"
    star_project.write("models/late.sql", f"MODEL ({header});\nSELECT 1 AS id, DATE '2026-01-01' AS day\n")

    ran = star_project("lint")

    place = "models/late.sql:1:56: ambiguousorinvalidcolumn"
    assert (
        f"Error: {place}: shop.late has no column `dt`. Return it from its query, or change `time_column`." in ran.out
    )


def test_models_that_read_each_other_are_an_error(star_project: CommandLine) -> None:
    star_project.write("models/a.sql", "MODEL (name shop.a, kind FULL);\nSELECT id FROM shop.b\n")
    star_project.write("models/b.sql", "MODEL (name shop.b, kind FULL);\nSELECT id FROM shop.a\n")

    ran = star_project("lint")

    assert ran.code == 1
    assert ran.out.startswith("Error: models/a.sql:1: refusedmodel: Models depend on each other in a cycle: ")


def test_characters_that_steer_a_terminal_or_cannot_be_seen_are_shown_as_escapes(star_project: CommandLine) -> None:
    star_project.write("models/star.sql", "MODEL (name `shop.\x1b[31mred\u200b`, kind FULL);\nSELECT 1 AS id\n")

    linted, rendered = star_project("lint"), star_project("render", "shop.\x1b[31mred")

    assert "\\x1b[31mred\\u200b" in linted.out and "\x1b" not in linted.out
    assert "\\x1b[31mred" in rendered.err and "\x1b" not in rendered.err


def test_a_model_beside_the_folder_of_models_is_a_warning(star_project: CommandLine) -> None:
    for path in ("lost.sql", "model/lost.sql"):
        star_project.write(path, "\nMODEL (name shop.lost, kind FULL);\nSELECT 1 AS id\n")
    star_project.write("notes.sql", "SELECT 1\n")

    ran = star_project("lint")

    lines = ran.out.splitlines()
    assert lines[0].startswith("Warning: lost.sql:1: refusedmodel: The model is not read: models are in `models/`.")
    assert lines[1].startswith("Warning: model/lost.sql:1: ")
    assert "0 errors, 2 warnings." in lines[2] and ran.code == 0


def test_a_warning_is_told_and_stops_nothing(star_project: CommandLine) -> None:
    rule(star_project, "warn_rules")

    ran, only = star_project("lint", "-o", "json"), star_project("lint", "--model", "sqlmesh_example.*")

    assert ran.code == 0
    assert ran.lines[0] == {
        "event": "lint", "rule": "noselectstar", "model": "shop.star", "path": "models/star.sql", "line": 2,
        "column": 8, "message": "the outermost SELECT uses `*`: name its columns.", "severity": "warning",
    }  # fmt: skip
    assert ran.result["lint"] == {"errors": 0, "warnings": 1}
    assert (only.code, only.out) == (0, "3 models opened. Nothing found.\n")


def test_a_plan_ends_at_a_broken_rule_before_spark_is_started(star_project: CommandLine) -> None:
    rule(star_project, "rules")

    ran, skipped = star_project("plan"), star_project("plan", "--skip-linter", "--skip-tests", "--no-prompts")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: models/star.sql:2: noselectstar: the outermost SELECT uses `*`")
    assert skipped.code == 0


def test_a_plan_tells_warnings_first(star_project: CommandLine) -> None:
    rule(star_project, "warn_rules")

    text = star_project("plan", "--skip-tests", "--no-prompts")
    told = star_project("plan", "--skip-tests", "-o", "json").lines

    assert text.out.startswith("Warning: models/star.sql:2:8: noselectstar: ")
    assert [line["event"] for line in told] == ["lint", "plan", "result"]


def test_a_linter_without_rules_says_so(star_project: CommandLine) -> None:
    told = star_project("lint").out

    star_project.write("config.yaml", (star_project.root / "config.yaml").read_text() + "\nlinter: {enabled: true}\n")

    assert told == (
        "4 models opened. Nothing found. "
        "No rules: set `linter: {enabled: true, rules: ...}` in config.yaml to check some.\n"
    )
    assert star_project("lint").out == (
        "4 models opened. Nothing found. The linter has no rules: name them under `linter: rules` in config.yaml.\n"
    )


def test_a_model_that_cannot_be_opened_fails_lint_and_is_named_once_by_a_plan(star_project: CommandLine) -> None:
    star_project.write("models/wrong.sql", "MODEL (name shop.wrong, kind FULL);\nSELECT x FRM shop.star WHERE x >\n")
    star_project.write("models/reader.sql", "MODEL (name shop.reader, kind FULL);\nSELECT x FROM shop.wrong\n")

    ran, planned = star_project("lint"), star_project("plan", "--skip-tests", "--no-prompts")

    assert ran.code == 1
    assert ran.out.startswith(
        "Error: models/wrong.sql:2:14: refusedmodel: The query is not valid Spark SQL: `shop` cannot stand here."
    )
    assert ran.out.endswith(
        "4 models opened. 1 model left out: each reads one that cannot be opened. 1 error, 0 warnings. "
        "No rules: set `linter: {enabled: true, rules: ...}` in config.yaml to check some.\n"
    )
    assert (planned.code, planned.out.count("models/wrong.sql:2")) == (0, 1)


def test_a_model_that_cannot_be_opened_warns_where_the_linter_says_so(star_project: CommandLine) -> None:
    rule(star_project, "warn_rules")
    star_project.write(
        "config.yaml", (star_project.root / "config.yaml").read_text().replace("noselectstar", "refusedmodel")
    )
    star_project.write("models/wrong.sql", "MODEL (name shop.wrong, kind FULL);\nSELECT x FRM shop.star WHERE x >\n")

    assert star_project("lint").code == 0


def test_a_missing_package_is_reported_without_advice_about_external_models(star_project: CommandLine) -> None:
    config = (star_project.root / "config.yaml").read_text()
    star_project.write(
        "config.yaml", config + RULES.format(key="rules").replace("noselectstar", "nomissingexternalmodels")
    )
    made = "for n in 'pq':\n    @model(f'shop.{n}', columns={'x': 'int'})\n    def execute(context, **kwargs): ...\n"
    code = f"import nowhere\nfrom sqlmesh import model\n{made}"
    star_project.write("models/made.py", code)
    star_project.write("models/reader.sql", "MODEL (name shop.reader, kind FULL);\nSELECT x FROM shop.p\n")

    ran = star_project("lint")

    assert "models/made.py:1: refusedmodel" in ran.out
    assert "Install it in mergeplan's environment, and name it in requirements.txt." in ran.out
    assert "external_models.yaml" not in ran.out


def test_a_query_over_changes_finds_the_model_that_a_plan_adds_and_nothing_in_lint(star_project: CommandLine) -> None:
    rule(star_project, "warn_rules")
    config = (star_project.root / "config.yaml").read_text()
    star_project.write("config.yaml", config.replace("noselectstar", "new_model_without_audit"))
    query = (Path(__file__).parents[4] / "docs" / "linter" / "new_model_without_audit.sql").read_text()
    star_project.write("linter/new_model_without_audit.sql", query)

    linted, planned = star_project("lint"), star_project("plan", "--skip-tests", "-o", "json").lines

    assert (linted.code, linted.out) == (0, "4 models opened. Nothing found.\n")
    violations = [line for line in planned if line["event"] == "lint" and line["model"] == "shop.star"]
    assert [(line["rule"], line["path"], line["line"]) for line in violations] == [
        ("newmodelwithoutaudit", "models/star.sql", 1)
    ]
