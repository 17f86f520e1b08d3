"""What the planner reports while it plans a pull request: the plan, stored as soon as it stands, and its batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import structlog

from mergeplan.bot.context import now_text
from mergeplan.bot.pulls.publish import Shower
from mergeplan.bot.results import pack_outcome
from mergeplan.planner.contract.lines import BatchLine, PlanLine, StageLine
from mergeplan.planner.contract.wire import Line

log = structlog.get_logger(__name__)


class PlanEvents:
    """Keeps a run's plan in the record at once, and its progress every `seconds`; the comment follows by itself."""

    def __init__(self, change: Callable[..., Any], shower: Shower, seconds: float) -> None:
        self._change = change
        self._shower = shower
        self._seconds = seconds
        self._shown_at = time.monotonic()

    def handle_line(self, line: Line) -> None:
        """Takes one line of the run."""
        if isinstance(line, PlanLine):
            log.info("plan_read", plan=line.plan.id)
            self._show(run_lines=pack_outcome([line], 0), fresh=True, planned_at=now_text(), spark_ui="")
        elif isinstance(line, StageLine) and line.spark_ui:
            self._show(spark_ui=line.spark_ui)
        elif isinstance(line, BatchLine) and time.monotonic() - self._shown_at > self._seconds:
            self._show(progress=f"`{line.model}`: batch {line.index} of {line.of}.")

    def _show(self, **changes: Any) -> None:
        self._shown_at = time.monotonic()
        self._change(**changes)
        self._shower.wake()
