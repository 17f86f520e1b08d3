"""The time of a model's rows, and what a run waits for."""

from dataclasses import dataclass
from datetime import datetime

from mergeplan.planner.model.property import Facet, declare


@dataclass(frozen=True)
class SignalCall:
    """A signal that a model waits for, with its arguments as (name, JSON)."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Schedule:
    allow_partials: bool = declare(
        False, Facet.METADATA, "a run computes the unit that is not over yet too", pinned=True
    )
    start: datetime | None = None  # UTC
    start_moves: bool = False  # written as `2 days ago`: the moment moves each day, and that is no edit
    start_text: str = ""  # the written text if it moves: another text is an edit
    end: datetime | None = None  # UTC, exclusive
    signals: tuple[SignalCall, ...] = ()  # when its intervals are ready
