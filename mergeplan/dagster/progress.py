"""Read the JSON lines of a run or a restatement as reports on models. It needs no Dagster."""

from __future__ import annotations

from dataclasses import dataclass, field

from mergeplan.planner.contract import lines
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line


@dataclass(frozen=True)
class Cleared:
    """The intervals of a restatement count as missing from now on; a retry runs what is missing."""

    plan_id: str


@dataclass(frozen=True)
class Remark:
    """Something to know that is about no batch."""

    message: str
    is_problem: bool = False


Report = lines.BatchLine | lines.AuditLine | lines.FailedLine | lines.SkippedLine | Cleared | Remark


@dataclass
class Progress:
    """What the lines of one process say, one after another."""

    failed: dict[str, str] = field(default_factory=dict)  # model -> why
    skipped: dict[str, str] = field(default_factory=dict)  # model -> the model that failed
    errors: list[lines.ErrorLine] = field(default_factory=list)
    result: ResultLine | None = None
    recovered: bool = False  # a promotion that a crash had left was finished
    failed_tests: list[str] = field(default_factory=list)
    failed_audits: list[str] = field(default_factory=list)  # that block
    plan_id: str = ""
    tables: dict[str, str] = field(default_factory=dict)  # model -> its physical table

    @property
    def is_taken(self) -> bool:
        """True when nothing was done because another run of the environment is under way."""
        return self.result is not None and bool(self.result.skipped)

    @property
    def may_succeed_later(self) -> bool:
        """True unless a person has to fix a file or the request first."""
        lasting = {"ProjectError", "RequestError", "UsageError", "Refused"}
        return not any(error.kind in lasting and not error.retry for error in self.errors)

    def read(self, line: Line) -> Report | None:
        """Return what a line reports of models; None for a line without such a report."""
        match line:
            case lines.PlanLine(plan=plan):
                self.plan_id = plan.id
                self.tables |= {model.name: model.table for model in plan.models}
                late = ", ".join(model.name for model in plan.models if model.intervals)
                return Remark(f"To compute: {late or 'nothing'}.")
            case lines.StageLine(name="backfill"):
                return Cleared(self.plan_id)
            case lines.BatchLine():
                return line
            case lines.AuditLine():
                if not line.ok and line.blocking:
                    self.failed_audits.append(f"{line.model}: {line.name}" if line.model else line.name)
                return line if line.model else _standalone(line)
            case lines.FailedLine(model=model, message=message):
                self.failed[model] = message
                return line
            case lines.SkippedLine(model=model, because=because):
                self.skipped[model] = because
                return line
            case lines.ErrorLine():
                self.errors.append(line)
                return Remark(describe_error(line), is_problem=True)
            case lines.TestLine(name=name, ok=False, message=message):
                self.failed_tests.append(name)
                return Remark(f"The test {name} failed: {message}", is_problem=True)
            case lines.RecoveredLine(environment=environment):
                self.recovered = True
                return Remark(f"Finishing an interrupted promotion of {environment}.")
            case ResultLine():
                self.result = line
                return Remark(line.skipped) if line.skipped else None
            case _:
                return _remark(line)


def describe_error(line: lines.ErrorLine) -> str:
    """Return an error with its file, line and hint."""
    place = f"{line.path}:{line.line}: " if line.path and line.line else f"{line.path}: " if line.path else ""
    return f"{place}{line.message} {line.hint}".strip()


def _standalone(audit: lines.AuditRow) -> Remark:
    verdict = "passed" if audit.ok else f"found {audit.count} row{'s' * (audit.count != 1)}"
    return Remark(f"The standalone audit {audit.name} {verdict}.", is_problem=not audit.ok)


def _remark(line: Line) -> Remark | None:
    """Return a remark for a line that is worth reading in a log and changes nothing; None for any other."""
    match line:
        case lines.LateLine(model=model, signals=signals):
            return Remark(f"{model} waits for {', '.join(signals)}.")
        case lines.WaitingLine(model=model, environment=environment, holder=holder):
            return Remark(f"Waiting for {holder}, which has {model or environment}.")
        case lines.RestatingLine(models=models):
            return Remark(f"Restated by their own cron: {', '.join(models)}.")
        case lines.WarningLine(message=message):
            return Remark(message, is_problem=True)
        case lines.DroppedLine(table=table):
            return Remark(f"Dropped {table}.")
        case lines.TestLine(name=name):
            return Remark(f"The test {name} passed.")
        case _:
            return None
