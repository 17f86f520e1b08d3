"""lint from outside, and what it does to a plan: neither starts Spark."""

from __future__ import annotations

import pytest

from planner.project.scaffold import write_example
from tests.planner.cli.conftest import CommandLine

STAR = "MODEL (name shop.star, kind FULL);\nSELECT * FROM sqlmesh_example.full_model\n"
RULES = "\nlinter:\n  enabled: true\n  {key}: [noselectstar]\n"


@pytest.fixture
def starred(offline: CommandLine) -> CommandLine:
    """`mergeplan` in the example, with a model that says `SELECT *`."""
    write_example(offline.root)
    offline.write("models/star.sql", STAR)
    config = (offline.root / "config.yaml").read_text()
    offline.write("config.yaml", config.partition("# --- Linting")[0])
    return offline


def rule(shell: CommandLine, key: str) -> None:
    shell.write("config.yaml", (shell.root / "config.yaml").read_text() + RULES.format(key=key))


def test_a_broken_rule_is_an_error_with_its_place_and_exit_code_1(starred: CommandLine) -> None:
    rule(starred, "rules")

    ran = starred("lint")

    place = "models/star.sql:2:8: noselectstar"
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == f"Error: {place}: the outermost SELECT uses `*`: name its columns.\n1 error, 0 warnings.\n"


def test_a_warning_is_told_and_stops_nothing(starred: CommandLine) -> None:
    rule(starred, "warn_rules")

    ran, only = starred("lint", "-o", "json"), starred("lint", "--model", "sqlmesh_example.*")

    assert ran.code == 0
    assert ran.lines[0] == {
        "event": "lint", "rule": "noselectstar", "model": "shop.star", "path": "models/star.sql", "line": 2,
        "column": 8, "message": "the outermost SELECT uses `*`: name its columns.", "severity": "warning",
    }  # fmt: skip
    assert ran.result["lint"] == {"errors": 0, "warnings": 1}
    assert (only.code, only.out) == (0, "3 models looked at, nothing found.\n")


def test_a_plan_ends_at_a_broken_rule_before_spark_is_started(starred: CommandLine) -> None:
    rule(starred, "rules")

    ran, skipped = starred("plan"), starred("plan", "--skip-linter", "--skip-tests", "--no-prompts")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: models/star.sql:2: noselectstar: the outermost SELECT uses `*`")
    assert skipped.code == 0


def test_a_plan_tells_warnings_first(starred: CommandLine) -> None:
    rule(starred, "warn_rules")

    text = starred("plan", "--skip-tests", "--no-prompts")
    told = starred("plan", "--skip-tests", "-o", "json").lines

    assert text.out.startswith("Warning: models/star.sql:2:8: noselectstar: ")
    assert [each["event"] for each in told] == ["lint", "plan", "result"]


def test_a_linter_without_rules_says_so(starred: CommandLine) -> None:
    told = starred("lint").out

    starred.write("config.yaml", (starred.root / "config.yaml").read_text() + "\nlinter: {enabled: true}\n")

    assert told == "The linter is not enabled: set `linter: {enabled: true, rules: ...}` in config.yaml.\n"
    assert starred("lint").out == "The linter has no rules: name them under `linter: rules` in config.yaml.\n"
