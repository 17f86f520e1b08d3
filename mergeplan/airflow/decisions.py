"""From what mergeplan's state says of a run to what the task of a model does next. Pure; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

OPEN = ("due", "running")
LOST_SECONDS = 600.0  # without a sign of life: longer than a worker takes to start a run again


class Step(StrEnum):
    """What the task of a model does next."""

    WAIT = "wait"
    SUCCEED = "succeed"  # its intervals were computed
    NOTHING_DUE = "nothing due"
    FAIL = "fail"
    RESUME = "resume"  # its failure is known, and it is tried again: the run goes on
    RESTATE = "restate"  # its result is known, and the task was cleared: its intervals are computed again


@dataclass(frozen=True)
class ModelView:
    """A model in a run; `reported` says that a task took this result up."""

    name: str
    status: str
    table: str = ""
    intervals: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    seconds: float = 0.0
    audits: tuple[tuple[str, int, bool], ...] = ()  # name, rows found, blocking
    message: str = ""
    reported: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """What a task shows of it: as return value, and in the extra of an asset's event."""
        audits = [{"name": name, "rows": rows, "blocking": blocking} for name, rows, blocking in self.audits]
        intervals = [list(interval) for interval in self.intervals]
        return {"model": self.name, "table": self.table, "intervals": intervals, "rows": self.rows, "audits": audits}


@dataclass(frozen=True)
class RunView:
    """A run; `alive` says that a process is at work in its environment, `quiet` how many seconds ago it changed."""

    id: str
    status: str
    revision: int = 0
    message: str = ""
    models: Mapping[str, ModelView] = field(default_factory=dict)
    alive: bool = False
    quiet: float = 0.0


@dataclass(frozen=True)
class Decision:
    """A step, why, and the model as the state has it."""

    step: Step
    reason: str = ""
    model: ModelView | None = None
    revision: int = 0  # of the environment


def decide(run: RunView | None, name: str, lost_seconds: float = LOST_SECONDS) -> Decision:
    """What the task of a model does, given its run (None: it has not begun)."""
    if run is None:
        return Decision(Step.WAIT, "The run has not begun.")
    model = run.models.get(name)
    if model is None:
        return _decide_absent(run, name, lost_seconds)
    if model.status == "done":
        if model.reported:
            return Decision(Step.RESTATE, "The task was cleared.", model)
        return Decision(Step.SUCCEED, _summary(model), model, run.revision)
    if model.status in OPEN and (run.alive or (run.quiet < lost_seconds and not model.reported)):
        return Decision(Step.WAIT, f"`{name}` is {model.status}.", model)
    if model.reported:
        if run.alive:
            return Decision(Step.WAIT, "Another attempt is at work.", model)
        return Decision(Step.RESUME, "It is tried again.", model)
    return Decision(Step.FAIL, model.message or _explain_loss(run), model)


def _decide_absent(run: RunView, name: str, lost_seconds: float) -> Decision:
    """Of a model that the run does not name nothing was due, once the run knows what is."""
    broken = run.status == "failed" and run.message
    if not broken and (run.models or run.status != "running"):
        return Decision(Step.NOTHING_DUE, f"Nothing of `{name}` was due.")
    if run.alive or run.quiet < lost_seconds:
        return Decision(Step.WAIT, "What is due is not known yet.")
    return Decision(Step.FAIL, run.message or _explain_loss(run))


def _explain_loss(run: RunView) -> str:
    return f"The run `{run.id}` ended without a result {run.quiet:.0f} s ago."


def _summary(model: ModelView) -> str:
    spans = ", ".join(f"{start} - {end}" for start, end in model.intervals)
    bad_rows = sum(rows for _, rows, _ in model.audits)
    audits = f", {len(model.audits)} audits found {bad_rows} rows" if model.audits else ""
    return f"`{model.name}` [{spans}]: {model.rows} rows in {model.seconds:.1f} s into {model.table}{audits}."
