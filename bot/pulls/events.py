"""What the planner reports while it plans a pull request: the plan, stored as soon as it stands, and its batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import structlog

from mergeplan.bot.context import now_text
from mergeplan.bot.pulls.publish import Shower
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.planning import Transition, report_progress, set_spark_ui, store_plan
from mergeplan.planner.contract.lines import BatchLine, PlanLine, StageLine
from mergeplan.planner.contract.wire import Line

log = structlog.get_logger(__name__)


class PlanEvents:
    """A listener that stores a run's plan in the record at once, and its progress every `seconds`.

    The comment follows by itself.
    """

    def __init__(self, update: Callable[[Transition], object], shower: Shower, seconds: float) -> None:
        self._update = update
        self._shower = shower
        self._seconds = seconds
        self._shown_at = time.monotonic()

    def handle_line(self, line: Line) -> None:
        if isinstance(line, PlanLine):
            log.info("plan_read", plan=line.plan.id)
            self._update_record(partial(store_plan, lines=pack_outcome([line], 0), planned_at=now_text()))
        elif isinstance(line, StageLine) and line.spark_ui:
            self._update_record(partial(set_spark_ui, address=line.spark_ui))
        elif isinstance(line, BatchLine) and time.monotonic() - self._shown_at > self._seconds:
            progress = f"`{line.model}`: batch {line.index} of {line.of}."
            self._update_record(partial(report_progress, progress=progress))

    def _update_record(self, transition: Transition) -> None:
        self._shown_at = time.monotonic()
        self._update(transition)
        self._shower.wake()
