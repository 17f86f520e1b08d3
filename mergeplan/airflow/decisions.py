"""From what mergeplan's state says of a run to what the task of a model does next. Pure; standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

OPEN = ("due", "running")
LOST_SECONDS = 600.0  # without a sign of life: longer than a worker takes to start a run again


class Step(StrEnum):
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
        note = {"note": self.message} if self.message else {}
        facts = {"model": self.name, "table": self.table, "intervals": intervals, "rows": self.rows, "audits": audits}
        return {**facts, **note}


@dataclass(frozen=True)
class RunView:
    """A run; `alive` means that a process works in its environment, `quiet` is the seconds since its last change.

    `shown` are the models that the environment has now; None if they were not read.
    """

    id: str
    status: str
    revision: int = 0
    message: str = ""
    models: Mapping[str, ModelView] = field(default_factory=dict)
    alive: bool = False
    quiet: float = 0.0
    environment: str = "prod"
    shown: frozenset[str] | None = None


@dataclass(frozen=True)
class Decision:
    """A step, why, and the models that it is about, as the state has them."""

    step: Step
    reason: str = ""
    models: tuple[ModelView, ...] = ()
    revision: int = 0  # of the environment


# Of a task with several models: it waits until each has a result, and computes nothing again that only one of them has.
WEIGHT = (Step.WAIT, Step.FAIL, Step.RESUME, Step.SUCCEED, Step.RESTATE, Step.NOTHING_DUE)


def present(rows: Iterable[dict[str, Any]], of: int) -> dict[str, Any] | None:
    """Return the result of a task: the data of its computed models, or None if none was computed.

    A task of one model returns its data; one of several (`of` is more than 1) lists them under `models`.
    """
    computed = [*rows]
    if of > 1:
        return {"models": computed} if computed else None
    return computed[0] if computed else None


def decide_task(run: RunView | None, names: Sequence[str], lost_seconds: float = LOST_SECONDS) -> Decision:
    """Return the decision for the task of some models, given their run (None: it has not begun)."""
    decisions = [decide(run, name, lost_seconds) for name in names]
    step = min((decision.step for decision in decisions), key=WEIGHT.index)
    reasons = dict.fromkeys(decision.reason for decision in decisions if decision.step is step)
    shown = (Step.SUCCEED, Step.RESTATE) if step is Step.SUCCEED else (step,)
    models = [model for decision in decisions if decision.step in shown for model in decision.models]
    return Decision(step, "\n".join(reasons), tuple(models), run.revision if run else 0)


def decide(run: RunView | None, name: str, lost_seconds: float = LOST_SECONDS) -> Decision:
    """Return the decision for the task of a model, given its run (None: it has not begun)."""
    if run is None:
        return Decision(Step.WAIT, "The run has not begun.")
    model = run.models.get(name)
    if (model is None or model.reported) and run.shown is not None and name not in run.shown:
        reason = f"`{run.environment}` does not have `{name}` any more: there is nothing to compute."
        return Decision(Step.NOTHING_DUE, reason)
    if model is None:
        return _decide_absent(run, name, lost_seconds)
    if model.status == "done":
        if model.reported:
            return Decision(Step.RESTATE, f"The task of `{name}` was cleared.", (model,))
        return Decision(Step.SUCCEED, _summary(model), (model,), run.revision)
    if model.status in OPEN and (run.alive or (run.quiet < lost_seconds and not model.reported)):
        return Decision(Step.WAIT, f"`{name}` is {model.status}.", (model,))
    if model.reported:
        if run.alive:
            return Decision(Step.WAIT, "Another attempt is at work.", (model,))
        return Decision(Step.RESUME, "It is tried again.", (model,))
    return Decision(Step.FAIL, f"`{model.name}`: {model.message}" if model.message else _explain_loss(run), (model,))


def _decide_absent(run: RunView, name: str, lost_seconds: float) -> Decision:
    """Decide for a model that the run does not name: nothing of it was due, if the run knows what is."""
    broken = run.status == "failed" and run.message
    if not broken and (run.models or run.status != "running"):
        return Decision(Step.NOTHING_DUE, f"Nothing of `{name}` was due.")
    if run.alive or run.quiet < lost_seconds:
        return Decision(Step.WAIT, "The due intervals are not known yet.")
    return Decision(Step.FAIL, run.message or _explain_loss(run))


def _explain_loss(run: RunView) -> str:
    return f"The run `{run.id}` ended without a result {run.quiet:.0f} s ago."


def _summary(model: ModelView) -> str:
    spans = ", ".join(f"{start} - {end}" for start, end in model.intervals)
    if model.message:
        return f"`{model.name}` [{spans}]: {model.message}"
    bad_rows = sum(rows for _, rows, _ in model.audits)
    audits = f", {len(model.audits)} audits found {bad_rows} rows" if model.audits else ""
    return f"`{model.name}` [{spans}]: {model.rows} rows in {model.seconds:.1f} s into {model.table}{audits}."
