"""Events of an apply as data, for any listener that shows its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.intervals import Interval, Timeline


class Event:
    """One step of a run, as a listener gets it."""


class Stage(StrEnum):
    CREATE = "create"
    BACKFILL = "backfill"
    COMPARE = "compare"
    PROMOTE = "promote"


class Recovery(StrEnum):
    """The end of an unfinished promotion that was resumed."""

    FINISHED = "finished"
    UNDONE = "undone"  # every view shows again what it showed before
    STUCK = "stuck"  # neither can be done now: it stays pending


@dataclass(frozen=True)
class StageStarted(Event):
    """A stage begins; `total` counts its tables, batches or views, `spark_ui` is the address of Spark's own pages."""

    stage: Stage
    total: int
    spark_ui: str = ""


@dataclass(frozen=True)
class StageSkipped(Event):
    """A stage has nothing to do, or must not begin."""

    stage: Stage
    reason: str


@dataclass(frozen=True)
class TableCreated(Event):
    """A physical table (or physical view) exists, still empty."""

    model: str
    table: str


@dataclass(frozen=True)
class TableAwaited(Event):
    """Another process builds the same table; its work is waited for and then used."""

    model: str
    table: str
    holder: str


@dataclass(frozen=True)
class BatchAwaited(Event):
    """A batch that an earlier run began is still running on Spark, or has ended meanwhile: it is not begun again."""

    model: str
    interval: Interval


@dataclass(frozen=True)
class BatchRepeated(Event):
    """A batch that an earlier run began has failed, or Spark no longer knows it: it is begun again."""

    model: str
    interval: Interval


@dataclass(frozen=True)
class RestatedThemselves(Event):
    """The automatic restatement of these models was due: their last units count as missing now."""

    models: tuple[str, ...]


@dataclass(frozen=True)
class EnvironmentTouched(Event):
    """A restatement affects another environment.

    `shared` are models whose restated table it shows too. `outdated` are models whose own tables lack that time until
    the environment plans or runs.
    """

    environment: str
    shared: tuple[str, ...]
    outdated: tuple[str, ...]


@dataclass(frozen=True)
class ModelStarted(Event):
    model: str
    batches: int


@dataclass(frozen=True)
class BatchDone(Event):
    """A batch is written, audited and recorded.

    `audits` counts those that ran on it, `audits_unchanged` those that passed before and still hold. A batch that is
    `unchanged` was not written, because no table that the query reads was written since the table was filled.
    """

    model: str
    index: int  # from 1
    of: int
    interval: Interval
    rows: int
    seconds: float
    audits: int
    copied: bool = False  # from the model's old table, which holds the same rows
    unchanged: bool = False
    audits_unchanged: int = 0


@dataclass(frozen=True)
class AuditRan(Event):
    model: str
    result: AuditResult


@dataclass(frozen=True)
class ClaimRefuted(Event):
    """The rules keep rows of a model, and Spark's analyzer disagrees: it is recomputed. A defect of the rules."""

    model: str
    reason: str


@dataclass(frozen=True)
class Compared(Event):
    """A model's new table was compared with the one it replaces, over the columns that a reader reads of it."""

    reader: str
    model: str
    columns: tuple[str, ...]
    spared: bool  # the reader keeps its table


@dataclass(frozen=True)
class ModelUpToDate(Event):
    """Another process computed all that the plan needs of this model."""

    model: str


@dataclass(frozen=True)
class ModelFailed(Event):
    """A model could not be computed; its readers are not begun."""

    model: str
    message: str


@dataclass(frozen=True)
class ModelSkipped(Event):
    """A model is not computed because `because`, which it reads, failed."""

    model: str
    because: str


@dataclass(frozen=True)
class ModelLate(Event):
    """A model waits for its signals; that time is left for a later run."""

    model: str
    signals: tuple[str, ...]
    late: Timeline


@dataclass(frozen=True)
class ViewSwapped(Event):
    view: str
    table: str


@dataclass(frozen=True)
class ViewDropped(Event):
    view: str


@dataclass(frozen=True)
class Promoted(Event):
    """An environment shows its new map; the numbers count views."""

    environment: str
    revision: int
    added: int
    swapped: int
    dropped: int
    unchanged: int


@dataclass(frozen=True)
class PromotionUndone(Event):
    """A promotion failed, and every view shows again what it showed before."""

    environment: str
    message: str


@dataclass(frozen=True)
class PromotionFound(Event):
    """A promotion that a crash left unfinished is resumed."""

    environment: str
    revision: int


@dataclass(frozen=True)
class PromotionRecovered(Event):
    """The end of a promotion that a crash left unfinished: `views` are those that came, moved or went with it."""

    environment: str
    revision: int
    plan_id: str
    action: str  # what it was: promoted, rolled_back, dropped
    views: tuple[str, ...]
    ended: Recovery
    message: str = ""  # why it was not finished


@dataclass(frozen=True)
class PromotionPending(Event):
    """A promotion is unfinished, and this process only reads; `holder` works on it, '' if no process does."""

    environment: str
    revision: int
    views: tuple[str, ...]
    holder: str


@dataclass(frozen=True)
class EnvironmentAwaited(Event):
    """A promotion of an environment is under way elsewhere, and is waited for."""

    environment: str
    holder: str


@dataclass(frozen=True)
class TableDropped(Event):
    table: str


Emit = Callable[[Event], None]


def ignore_event(_event: Event) -> None: ...
