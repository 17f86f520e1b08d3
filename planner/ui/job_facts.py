"""The content of a job's JSON lines, for its page: progress, audits, tests, broken rules, differences. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from mergeplan.planner.api.jobs.journal import parse_line
from mergeplan.planner.contract import lines
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.tables import DataDifference
from mergeplan.planner.contract.wire import LINES
from mergeplan.planner.site.progress import RunProgress, apply_line

EVENT_NAMES = tuple(line.model_fields["event"].default for line in LINES)  # of server-sent events


@dataclass(frozen=True)
class JobFacts:
    progress: RunProgress
    plan: PlanView | None = None
    result: ResultLine | None = None
    audits: tuple[lines.AuditLine, ...] = ()
    tests: tuple[lines.TestLine, ...] = ()
    violations: tuple[lines.LintLine, ...] = ()
    differences: tuple[lines.TableDiffLine | DataDifference, ...] = ()
    errors: tuple[lines.ErrorLine, ...] = ()
    warnings: tuple[str, ...] = ()


def read_facts(job_id: str, texts: Iterable[bytes]) -> JobFacts:
    """Return the facts of a job; output of libraries between its lines is ignored."""
    progress = RunProgress(job_id)
    plan, result = None, None
    audits: list[lines.AuditLine] = []
    tests: list[lines.TestLine] = []
    violations: list[lines.LintLine] = []
    differences: list[lines.TableDiffLine | DataDifference] = []
    errors: list[lines.ErrorLine] = []
    warnings: list[str] = []
    for text in texts:
        line = parse_line(text)
        if line is None:
            continue
        progress = apply_line(progress, line)
        match line:
            case lines.PlanLine():
                plan = line.plan
            case lines.AuditLine():
                audits.append(line)
            case lines.TestLine():
                tests.append(line)
            case lines.LintLine():
                violations.append(line)
            case lines.TableDiffLine():
                differences.append(line)
            case lines.ErrorLine():
                errors.append(line)
            case lines.WarningLine():
                warnings.append(line.message)
            case ResultLine():
                plan, result = line.plan or plan, line
                differences += line.data_diff or ()
            case _:
                pass
    return JobFacts(
        progress,
        plan,
        result,
        tuple(audits),
        tuple(tests),
        tuple(violations),
        tuple(differences),
        tuple(errors),
        tuple(warnings),
    )


def error_sentence(error: lines.ErrorLine) -> str:
    place = f"`{error.path}{f':{error.line}' if error.line else ''}`: " if error.path else ""
    return f"{place}{error.message} {error.hint}".strip()
