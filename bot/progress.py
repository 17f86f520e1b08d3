"""How far a run of the planner has come, model by model: the run's lines folded into one value. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from mergeplan.planner.contract.lines import (
    BatchLine,
    ComparedLine,
    FailedLine,
    PlanLine,
    RepeatedLine,
    SkippedLine,
    StageLine,
    TableLine,
    TestLine,
    ViewLine,
    WaitingLine,
)
from mergeplan.planner.contract.plan import ModelChange
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line

WEB_ADDRESS = re.compile(r"https?://[^\s()<>\"'`\[\]]+")  # and nothing that a link could do but lead there
COUNTED = {"tests": TestLine, "create": TableLine, "promote": ViewLine}  # a line of each for each thing of the stage


class Step(StrEnum):
    """Where a model stands within a run."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    UNCHANGED = "unchanged"  # its inputs hold the same rows: nothing is computed
    FAILED = "failed"
    LEFT_OUT = "left out"  # another one failed


@dataclass(frozen=True)
class ModelProgress:
    """One model that a run computes."""

    name: str
    step: Step = Step.WAITING
    done: int = 0
    of: int = 0  # batches; 0 before the first one has ended
    rows: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class RunProgress:
    """One run: the stage that it is in, and its models, parents first."""

    run_id: str
    subject: str = ""  # of a run for prod: `#7`, or the commit
    stage: str = ""
    done: int = 0  # of the stage
    of: int = 0
    models: tuple[ModelProgress, ...] = ()
    note: str = ""
    spark_ui: str = ""  # the address of Spark's own pages
    ended: bool = False
    updated_at: float = 0.0  # seconds of the epoch

    @property
    def batches(self) -> tuple[int, int]:
        """Batches that are done, and of how many: at least, while some models have not begun."""
        return sum(each.done for each in self.models), sum(max(1, each.of) for each in self.models if _counts(each))


def with_line(progress: RunProgress, line: Line) -> RunProgress:
    """The progress after one more line of the run; the same object where the line is not about it."""
    match line:
        case PlanLine():
            models = tuple(ModelProgress(each.name) for each in line.plan.models if _is_computed(each))
            return replace(progress, models=models)
        case StageLine():
            ui = line.spark_ui if WEB_ADDRESS.fullmatch(line.spark_ui) else progress.spark_ui
            return replace(progress, stage=line.name, done=0, of=line.total, note="", spark_ui=ui)
        case BatchLine():
            return _with_batch(progress, line)
        case ComparedLine() if line.skipped:
            return _changed(progress, line.reader, lambda each: replace(each, step=Step.UNCHANGED))
        case FailedLine():
            return _changed(progress, line.model, lambda each: replace(each, step=Step.FAILED, note=line.message))
        case SkippedLine():
            note = f"`{line.because}` failed"
            return _changed(progress, line.model, lambda each: replace(each, step=Step.LEFT_OUT, note=note))
        case WaitingLine() if line.interval:
            return replace(progress, note=f"Waits for a batch of `{line.model}` that an earlier run began on Spark.")
        case RepeatedLine():
            note = f"A batch of `{line.model}` that an earlier run began on Spark is lost: it is computed again."
            return replace(progress, note=note)
        case WaitingLine():
            what = line.model or line.environment or line.table or ""
            return replace(progress, note=f"Waits for {line.holder}, who is at `{what}`.")
        case ResultLine():
            return replace(progress, ended=True, note="")
        case TestLine() | TableLine() | ViewLine() if isinstance(line, COUNTED.get(progress.stage, ())):
            return replace(progress, done=progress.done + 1)
        case _:
            return progress


def _with_batch(progress: RunProgress, line: BatchLine) -> RunProgress:
    def computed(each: ModelProgress) -> ModelProgress:
        done = each.done + 1
        step = Step.DONE if done >= line.of else Step.RUNNING
        rows, seconds = each.rows + line.rows, each.seconds + line.seconds
        return replace(each, step=step, done=done, of=line.of, rows=rows, seconds=seconds)

    done = progress.done + 1 if progress.stage == "backfill" else progress.done
    return replace(_changed(progress, line.model, computed), done=done, note="")


def _changed(progress: RunProgress, name: str, change: Callable[[ModelProgress], ModelProgress]) -> RunProgress:
    """With one model changed; one that the plan did not name is added."""
    known = any(each.name == name for each in progress.models)
    models = progress.models if known else (*progress.models, ModelProgress(name))
    return replace(progress, models=tuple(change(each) if each.name == name else each for each in models))


def _is_computed(model: ModelChange) -> bool:
    return bool(model.intervals) and not model.skipped


def _counts(model: ModelProgress) -> bool:
    return model.step is not Step.UNCHANGED
