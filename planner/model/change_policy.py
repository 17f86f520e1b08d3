"""The way in which an edit of an incremental model, and a request to compute it again, reach its table."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.intervals import Cron


@dataclass(frozen=True)
class ChangePolicy:
    forward_only: bool = False
    disable_restatement: bool = False
    on_destructive_change: str = "error"  # of a forward-only change: error, warn, allow or ignore
    on_additive_change: str = "allow"
    auto_restatement_cron: Cron | None = None
    auto_restatement_intervals: int | None = None  # how many units a restatement reaches back; None: all
