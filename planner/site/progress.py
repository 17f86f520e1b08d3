"""How far a run of the planner has come, model by model: the run's lines folded into one value. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from mergeplan.planner.contract import lines
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line

WEB_ADDRESS = re.compile(r"https?://[^\s()<>\"'`\[\]]+")  # and nothing that a link could do but lead there
# a line of each for each thing of the stage
COUNTED = {"tests": lines.TestLine, "create": lines.TableLine, "promote": lines.ViewLine}


class Step(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    UNCHANGED = "unchanged"  # its inputs hold the same rows: nothing is computed
    FAILED = "failed"
    LEFT_OUT = "left out"  # another one failed


@dataclass(frozen=True)
class ModelProgress:
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
        return sum(model.done for model in self.models), sum(
            max(1, model.of) for model in self.models if model.step is not Step.UNCHANGED
        )

    @property
    def percent(self) -> int:
        """The completed percentage: of the batches of a backfill, or of the models that are known to be computed."""
        done, total = (self.done, self.of) if self.stage == "backfill" and self.of else self.batches
        if self.ended:
            return 100
        return min(99, 100 * done // total) if total else 0


def apply_line(progress: RunProgress, line: Line) -> RunProgress:
    """Return the progress after one more line; the same object where the line does not concern it."""
    match line:
        case lines.PlanLine():
            models = tuple(
                ModelProgress(model.name) for model in line.plan.models if model.intervals and not model.skipped
            )
            return replace(progress, models=models)
        case lines.StageLine():
            ui = line.spark_ui if WEB_ADDRESS.fullmatch(line.spark_ui) else progress.spark_ui
            return replace(progress, stage=line.name, done=0, of=line.total, note="", spark_ui=ui)
        case lines.BatchLine():
            return _apply_batch(progress, line)
        case lines.ComparedLine() if line.skipped:
            return _update_model(progress, line.reader, lambda model: replace(model, step=Step.UNCHANGED))
        case lines.FailedLine():
            return _update_model(
                progress, line.model, lambda model: replace(model, step=Step.FAILED, note=line.message)
            )
        case lines.SkippedLine():
            note = f"`{line.because}` failed"
            return _update_model(progress, line.model, lambda model: replace(model, step=Step.LEFT_OUT, note=note))
        case lines.WaitingLine() if line.interval:
            return replace(progress, note=f"Waits for a batch of `{line.model}` that an earlier run began on Spark.")
        case lines.RepeatedLine():
            note = f"A batch of `{line.model}` that an earlier run began on Spark is lost: it is computed again."
            return replace(progress, note=note)
        case lines.WaitingLine():
            target = line.model or line.environment or line.table or ""
            return replace(progress, note=f"Waits for {line.holder}, which is changing `{target}`.")
        case ResultLine():
            return replace(progress, ended=True, note="")
        case lines.TestLine() | lines.TableLine() | lines.ViewLine() if isinstance(
            line, COUNTED.get(progress.stage, ())
        ):
            return replace(progress, done=progress.done + 1)
        case _:
            return progress


def _apply_batch(progress: RunProgress, line: lines.BatchLine) -> RunProgress:
    def add_batch(model: ModelProgress) -> ModelProgress:
        if line.unchanged:
            return replace(model, step=Step.UNCHANGED)
        done = model.done + 1
        step = Step.DONE if done >= line.of else Step.RUNNING
        rows, seconds = model.rows + line.rows, model.seconds + line.seconds
        return replace(model, step=step, done=done, of=line.of, rows=rows, seconds=seconds)

    done = progress.done + 1 if progress.stage == "backfill" else progress.done
    return replace(_update_model(progress, line.model, add_batch), done=done, note="")


def _update_model(progress: RunProgress, name: str, change: Callable[[ModelProgress], ModelProgress]) -> RunProgress:
    """With one model changed; one that the plan did not name is added."""
    is_listed = any(model.name == name for model in progress.models)
    models = progress.models if is_listed else (*progress.models, ModelProgress(name))
    return replace(progress, models=tuple(change(model) if model.name == name else model for model in models))
