"""lint's finding of the bot: what it could not read of `cicd_bot`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.bot.main import BOT_VERBS
from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.project.scaffold import Wishes, write_project


@pytest.mark.parametrize(("key", "code"), [("merge_method", 0), ("merge_methd", 1)])
def test_a_wrong_key_of_the_bot_is_named_before_a_pull_request_meets_it(
    key: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, Wishes())
    config = tmp_path / "config.yaml"
    config.write_text(f"cicd_bot:\n  {key}: squash\n{config.read_text()}")

    ended = run({**VERBS, **BOT_VERBS}, ["lint", "-p", str(tmp_path)])

    assert ended == code
    assert ("config.yaml:2: `cicd_bot.merge_methd` is not a key" in capsys.readouterr().err) is bool(code)
