"""The demo ends before it begins where its Spark cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.bot.demo import SECRET, _environment, run_demo
from mergeplan.bot.sandbox.server import Sandbox
from mergeplan.planner.errors import RequestError


def test_a_spark_that_cannot_start_is_told_before_the_story_begins(tmp_path: Path) -> None:
    lacking = "table_format: delta\n      jars_dir: /nowhere"

    with pytest.raises(RequestError, match=r"Spark does not start: .*there is no folder `/nowhere`"):
        run_demo(tmp_path / "demo", keep=False, spark=lacking)


def test_the_checks_of_the_demo_lead_to_the_pages_of_its_service(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "github", webhook_url="http://127.0.0.1:1/webhook", secret=SECRET) as github:
        environment = _environment(github, tmp_path, tmp_path / "key", 4321)

    assert environment["MERGEPLAN_PUBLIC_URL"] == "http://127.0.0.1:4321"
