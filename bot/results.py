"""What a planner child's lines come to: how it ended, what is wrong, and what the bot asks of a plan. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, get_args

from pydantic import Field, ValidationError

from mergeplan.planner.contract.base import Data
from mergeplan.planner.contract.history import RollbackView
from mergeplan.planner.contract.lines import AuditLine, AuditRow, ErrorLine, LintLine, PlanLine, TestLine
from mergeplan.planner.contract.physical import PhysicalPlanRow
from mergeplan.planner.contract.plan import ModelChange, PlanView, Remark
from mergeplan.planner.contract.result import BackfillCounts, EnvironmentRow, KeptRow, PromotionRow, ResultLine
from mergeplan.planner.contract.tables import DataDifference
from mergeplan.planner.contract.wire import Line

Kept = PlanLine | ErrorLine | LintLine | TestLine | AuditLine | ResultLine
KEPT = get_args(Kept)  # the lines that a report is made of
WITHOUT_VIEW = frozenset({"EMBEDDED", "EXTERNAL"})
RULE_BROKEN = "RuleBroken"  # the kind of an error of the linter
REMEMBERED = 8  # outcomes that are not parsed again: those of the pull requests that are worked on now


@dataclass(frozen=True)
class Problem:
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""
    kind: str = ""
    audit: str = ""  # the audit that this is about
    model: str = ""  # and its model, '' for a standalone one
    retry: bool = False  # nothing has to be mended: the same request may succeed later

    @property
    def where(self) -> str:
        """`models/orders.sql:7`, or nothing when the place is unknown."""
        return f"{self.path}:{self.line}" if self.path and self.line else self.path


@dataclass(frozen=True)
class PlannerOutcome:
    """How one child ended, and what of its lines is worth keeping."""

    exit_code: int
    ok: bool
    applied: bool = False
    plan: PlanView | None = None
    promotion: PromotionRow | None = None
    tests: tuple[TestLine, ...] = ()
    passed: int = 0
    unchanged: int = 0  # of these, that had passed before and did not run
    failed: int = 0
    audits: tuple[AuditRow, ...] = ()
    problems: tuple[Problem, ...] = ()
    environments: tuple[EnvironmentRow, ...] | None = None
    pending: frozenset[str] = frozenset()  # environments whose views may be of two revisions
    warnings: tuple[Problem, ...] = ()  # of the linter: they stop nothing
    backfill: BackfillCounts | None = None  # what this run computed
    cleaned: tuple[str, ...] = ()  # tables whose old versions the janitor removed
    kept: tuple[KeptRow, ...] = ()  # those whose old versions it left, and why
    rollback: RollbackView | None = None  # what going back did, or would do
    data_diff: tuple[DataDifference, ...] = ()  # what the changes do to rows, as far as that was asked for
    physical_plan: tuple[PhysicalPlanRow, ...] = ()  # what the edits do to Spark's physical plans

    @property
    def is_defect(self) -> bool:
        """True when the fault is ours (exit 3, a signal, no result at all), not the project's."""
        return not self.ok and self.exit_code not in (1, 2, 4)

    @property
    def is_at_file(self) -> bool:
        """True when a file explains how it ended, were it by a signal."""
        return any(problem.path for problem in self.problems)

    @property
    def is_built(self) -> bool:
        """True if the environment has the plan's tables: this run built them, or had nothing to add."""
        has_all = self.plan is not None and not any(model.intervals for model in self.plan.models)
        return self.ok and (self.applied or has_all)

    @property
    def is_blocked(self) -> bool:
        """True when the plan was made and is refused for what it would do, and nothing else went wrong."""
        blocked = bool(self.plan and self.plan.blockers) and not self.failed
        return blocked and all(problem.kind == "Refused" for problem in self.problems)

    @property
    def broken_rules(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.kind == RULE_BROKEN)

    @property
    def is_too_costly(self) -> bool:
        """True if the plan was made, and nothing is computed before a person allows its cost."""
        return bool(self.plan) and any(problem.kind == "TooCostly" for problem in self.problems)

    @property
    def may_pass_later(self) -> bool:
        """True if nothing has to be fixed: another process held what it needs, the state changed, Spark was away."""
        return not self.ok and any(problem.retry for problem in self.problems)

    @property
    def lost_spark(self) -> bool:
        """True if Spark ended or ran out of memory during the run."""
        return any(problem.kind == "SparkLost" for problem in self.problems)


class _Run(Data):
    exit_code: int
    lines: tuple[Annotated[Kept, Field(discriminator="event")], ...]


def pack_outcome(lines: Iterable[Kept], exit_code: int) -> str:
    return _Run(exit_code=exit_code, lines=tuple(lines)).model_dump_json()


@lru_cache(maxsize=REMEMBERED)
def unpack_outcome(text: str) -> PlannerOutcome | None:
    """Return the outcome of a `packed` text; None if none, or of another version. Equal texts are parsed once."""
    if not text:
        return None
    try:
        run = _Run.model_validate_json(text)
    except ValidationError:
        return None
    return read_outcome(run.lines, run.exit_code)


def select_lines(lines: Iterable[Line]) -> tuple[Kept, ...]:
    """Return the lines that a report needs, without passed tests, progress and a repeated plan."""
    reported_lines = [line for line in lines if isinstance(line, KEPT) and not (isinstance(line, TestLine) and line.ok)]
    repeated = any(isinstance(line, ResultLine) and line.plan for line in reported_lines)
    return tuple(line for line in reported_lines if not (isinstance(line, PlanLine) and repeated))


def read_outcome(lines: Sequence[Kept], exit_code: int) -> PlannerOutcome:
    """Return the outcome of a child's lines and exit code; without a result it failed."""
    results = [line for line in lines if isinstance(line, ResultLine)]
    result = results[-1] if results else ResultLine(ok=False)
    plans = [line.plan for line in lines if isinstance(line, PlanLine | ResultLine) and line.plan]
    tests = tuple(line for line in lines if isinstance(line, TestLine))
    return PlannerOutcome(
        exit_code=exit_code,
        ok=exit_code == 0 and result.ok,
        applied=result.applied,
        plan=plans[-1] if plans else None,
        promotion=result.promotion or result.promoted_before,
        tests=tests,
        passed=result.tests.passed if result.tests else 0,
        unchanged=result.tests.unchanged if result.tests else 0,
        failed=(result.tests.failed if result.tests else 0) or sum(not test.ok for test in tests),
        audits=result.audits or tuple(line for line in lines if isinstance(line, AuditLine)),
        problems=tuple(dict.fromkeys(_build_problem(line) for line in lines if isinstance(line, ErrorLine))),
        environments=result.environments,
        pending=frozenset(result.pending or ()),
        warnings=tuple(
            Problem(f"{line.rule}: {line.message}", line.path, line.line, line.column)
            for line in lines
            if isinstance(line, LintLine) and line.severity == "warning"
        ),
        backfill=result.backfill,
        cleaned=result.cleaned or (),
        kept=result.kept or (),
        rollback=result.rollback,
        data_diff=result.data_diff or (),
        physical_plan=result.physical_plan or (),
    )


def _build_problem(error: ErrorLine) -> Problem:
    return Problem(
        error.message,
        error.path,
        error.line,
        error.column,
        error.hint,
        error.kind,
        audit=error.audit or "",
        model=error.model or "" if error.audit else "",
        retry=error.retry,
    )


def problems_of(remarks: Iterable[Remark]) -> tuple[Problem, ...]:
    return tuple(Problem(notice.message, notice.path, notice.line) for notice in remarks)


def has_effect(plan: PlanView | None) -> bool:
    """Return False when no model would change and nothing is wrong."""
    return plan is not None and bool(plan.models or plan.blockers or plan.not_selected)


def changes_nothing(outcome: PlannerOutcome | None) -> bool:
    """Return True where no plan was needed, or it changes no model."""
    return outcome is None or (outcome.ok and not has_effect(outcome.plan))


def find_skips(plan: PlanView) -> tuple[ModelChange, ...]:
    """Return the models that were not computed, since their inputs hold the same rows."""
    return tuple(model for model in plan.models if model.skipped)


def direct_changes(plan: PlanView | None) -> tuple[ModelChange, ...]:
    """Return the models that the pull request itself edits and that a person may categorise."""
    models = plan.models if plan else ()
    return tuple(model for model in models if model.change == "direct" and model.rule != "restated")


def view_changes(plan: PlanView) -> tuple[ModelChange, ...]:
    """Return the models whose view in the base environment would show another table."""
    return tuple(
        model
        for model in plan.models
        if model.change != "removed" and model.shares != plan.base and model.kind.upper() not in WITHOUT_VIEW
    )


def unreported_audits(outcome: PlannerOutcome) -> tuple[AuditRow, ...]:
    """Return the failed audits that are not among the problems."""
    reported = {(problem.model, problem.audit) for problem in outcome.problems if problem.audit}
    return tuple(audit for audit in outcome.audits if not audit.ok and (audit.model, audit.name) not in reported)


def audit_subject(audit: AuditRow) -> str:
    return audit.model or ", ".join(audit.reads)


def is_free(promotion: PromotionRow) -> bool:
    """Return True when nothing was computed; False too for a run that ended before it could report."""
    return promotion.spark_jobs == 0 and not (promotion.backfill and promotion.backfill.batches)


def was_interrupted(promotion: PromotionRow) -> bool:
    """Return True when the promoting run ended before it could report what it computed."""
    return promotion.spark_jobs is None


def cost_shown(plan: PlanView | None) -> tuple[int, float]:
    """Return the bytes and seconds that a plan is estimated to cost, at least."""
    models = plan.models if plan else ()
    return sum(model.estimate.bytes for model in models), sum(model.estimate.seconds for model in models)
