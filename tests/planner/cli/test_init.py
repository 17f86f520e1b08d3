"""init: its questions in a terminal, its arguments anywhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import ALONE, FILES


def answer_prompts(folder: Path, *answers: str) -> str:
    """What a terminal shows in which somebody answers."""
    ours, theirs = pty.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "mergeplan.planner.cli.main", "init"],
            cwd=folder, stdin=theirs, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    return ran.stdout


@pytest.mark.parametrize(
    ("arguments", "steps"), [(["init", "shop", "-t", "empty"], ["cd shop"]), (["init", "-t", "empty"], [])]
)
def test_the_next_steps_are_commands_that_work_where_one_stands(
    arguments: list[str], steps: list[str], offline: CommandLine
) -> None:
    lines = offline(*arguments).out.splitlines()
    commands = [line.removeprefix("- ").split("   ")[0] for line in lines if line.startswith("- ")]

    assert commands == [*steps, "mergeplan plan --explain", "mergeplan plan"]


def test_a_terminal_is_asked_for_files_spark_and_mode(tmp_path: Path) -> None:
    shown = answer_prompts(tmp_path, "2", "2", "sc://spark.internal:15002", "2")

    config = (tmp_path / "config.yaml").read_text()
    assert shown.index("What type of project") < shown.index("Which Spark runs it?") < shown.index("CLI experience")
    assert "Your mergeplan project is ready!" in shown
    assert not list((tmp_path / "models").iterdir())
    assert '      type: spark\n      remote: "sc://spark.internal:15002"\n' in config
    assert "plan:\n  no_diff: true" in config


def test_arguments_spare_the_questions(offline: CommandLine) -> None:
    ran = offline("init", "shop", "--master", "spark://host:7077", "--cli-mode", "flow")

    assert (ran.code, ran.err) == (0, "")
    assert 'master: "spark://host:7077"' in (offline.root / "shop/config.yaml").read_text()
    assert (offline.root / "shop/models/full_model.sql").exists()
    assert offline("dag", "--project", "shop").code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            "--remote spark://host",
            "`spark://host` is no address of a Spark. Write it like `sc://spark.internal:15002`.",
        ),
        ("--remote sc://ann:pw@host", "`sc://ann:pw@host` is no address of a Spark."),
        ("--remote sc://h --master yarn", "`--remote` and `--master` are two ways to reach Spark: give one of them."),
    ],
)
def test_a_wrong_address_is_told_and_nothing_is_written(arguments: str, told: str, offline: CommandLine) -> None:
    ran = offline("init", *arguments.split())

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: {told}")
    assert list(offline.root.iterdir()) == []


def test_a_project_in_flow_mode_is_planned_without_questions_and_diffs(offline: CommandLine) -> None:
    offline("init", "spark", "--cli-mode", "flow")

    asked = offline("plan", "--no-prompts", "--skip-tests")
    program = offline("plan", "--skip-tests", "-o", "json")

    assert "Apply it with: mergeplan apply" in asked.out
    assert program.result["applied"] is False


def test_what_config_yaml_says_of_plan_spares_the_question_and_the_diff(shop: Callable[..., CommandLine]) -> None:
    config = FILES["config.yaml"] + "plan: {auto_apply: true, no_diff: true}\n"
    mergeplan = shop(**ALONE, config=config, total="MODEL (name shop.total, kind VIEW);\nSELECT 7 AS total")
    first = mergeplan("plan")
    mergeplan.edit("models/total.sql", "7", "8")
    second = mergeplan("plan")

    assert (first.code, second.code) == (0, 0)
    assert "Apply -" not in first.out + second.out
    assert "SELECT 8" not in second.out
    assert mergeplan.state.environments.get("prod").revision == 2


def test_what_belongs_to_one_machine_is_ignored_by_git(offline: CommandLine) -> None:
    offline.write(".gitignore", "*.log\n.mergeplan/")

    offline("init", "spark", "-t", "empty")

    lines = (offline.root / ".gitignore").read_text().splitlines()
    assert lines[:2] == ["*.log", ".mergeplan/"]
    assert lines.count(".mergeplan/") == 1 and "spark-warehouse/" in lines
