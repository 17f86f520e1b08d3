"""completion: the shells' own scripts, and what mergeplan answers when they ask."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mergeplan.planner.cli.main import VERBS
from tests.planner.cli.conftest import CommandLine


@pytest.mark.parametrize(
    ("shell", "line"), [("bash", "complete "), ("zsh", "#compdef mergeplan"), ("fish", "complete ")]
)
def test_each_shell_gets_a_script_that_asks_mergeplan(shell: str, line: str, offline: CommandLine) -> None:
    ran = offline("completion", shell)

    assert (ran.code, ran.err) == (0, "")
    assert line in ran.out
    assert f"_MERGEPLAN_COMPLETE={shell}_complete" in ran.out


@pytest.mark.parametrize(
    ("words", "number", "expected"),
    [("mergeplan re", "1", "plain,render"), ("mergeplan plan --expl", "2", "plain,--explain")],
)
def test_verbs_and_options_are_completed(words: str, number: str, expected: str) -> None:
    environment = {"_MERGEPLAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": number}

    ran = subprocess.run(
        [sys.executable, "-m", "mergeplan.planner.cli.main"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert expected in ran.stdout.splitlines()
    assert len(ran.stdout.splitlines()) < len(VERBS)
