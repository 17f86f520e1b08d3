"""What every step of an apply works with."""

from __future__ import annotations

from dataclasses import dataclass

from planner.apply.events import Emit
from planner.engine.protocol import Engine
from planner.project.loader import Project
from planner.state.store import StateStore


@dataclass(frozen=True)
class ApplyContext:
    """The project, the Spark, the state, and where each step is reported."""

    project: Project
    engine: Engine
    store: StateStore
    emit: Emit
