"""What is shown while nothing can be shown yet."""

from __future__ import annotations

import pytest

from mergeplan.planner.cli.texts.unfinished_text import show_progress
from mergeplan.planner.session.events import SparkStarted, SparkStarting, TestsStarted


def test_what_takes_seconds_is_announced_on_standard_error_also_where_it_is_piped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for event in (SparkStarting(), SparkStarting(again=True), SparkStarted(6.14), TestsStarted(1), TestsStarted(2)):
        show_progress(event)

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "Starting Spark...",
        "The warm Spark lacks a table format: it starts again when no other run uses it...",
        "Spark started in 6.1 s.",
        "Running 1 unit test...",
        "Running 2 unit tests...",
    ]
