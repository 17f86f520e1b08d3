"""The objects that every step of an apply uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mergeplan.planner.apply.events import Emit
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.project.loader import Project
from mergeplan.planner.state.store import StateStore


@dataclass(frozen=True)
class ApplyContext:
    """The project, the Spark, the state, the emitter of events, and the check that may end the run."""

    project: Project
    engine: Engine
    store: StateStore
    emit: Emit
    check: Callable[[], None] = lambda: None  # raises Cancelled to end the run
    spark: str = ""  # a digest of Spark's settings; '' if they may change unnoticed
