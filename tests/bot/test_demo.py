"""The demo ends before it begins where its Spark cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.demo import run_demo
from planner.errors import RequestError


def test_a_spark_that_cannot_start_is_told_before_the_story_begins(tmp_path: Path) -> None:
    lacking = "table_format: delta\n      jars_dir: /nowhere"

    with pytest.raises(RequestError, match=r"Spark does not start: .*there is no folder `/nowhere`"):
        run_demo(tmp_path / "demo", keep=False, spark=lacking)
