"""The bodies of requests for jobs, and the arguments of `mergeplan` that each becomes.

An option stands as `--name=value`, and what a name stands for comes after `--`: no value is taken for an option.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from mergeplan.planner.api.context import Closed
from mergeplan.planner.api.jobs.job import JobKind
from mergeplan.planner.api.jobs.store import JobRequest
from mergeplan.planner.api.names import Date, EnvironmentName, Name, Sql, Word
from mergeplan.planner.contract.base import Detail
from mergeplan.planner.data_field import describe
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.snapshot.environment import PROD

Selectors = Annotated[tuple[Name, ...], Field(max_length=200)]
Category = Literal["breaking", "non-breaking", "forward-only", "reset"]


class Note(Closed):
    """A request with a reason, which stands in the environment's history."""

    note: Word = describe("", "why, for the environment's history")


class PlanBody(Closed):
    """What is planned."""

    environment: EnvironmentName = describe("", 'what is planned; `""`: as the project says, or prod')
    start: Date | None = describe(None, "compute from this day on only")
    end: Date | None = describe(None, "compute up to and including this day only")
    execution_time: Date | None = describe(None, "plan as if it were this moment")
    categories: dict[Name, Category] = Field(default={}, max_length=1000, description="of changed models, by name")
    forward_only: bool = describe(False, "keep the rows of all changed models")
    effective_from: Date | None = describe(None, "with `forward_only`: recompute from this day on")
    enable_preview: bool | None = describe(None, "fill previews of forward-only changes")
    allow_destructive: Selectors = describe((), "models whose change may drop columns")
    allow_additive: Selectors = describe((), "models whose forward-only change may add columns")
    select: Selectors = describe((), "plan the changes of these models only")
    backfill: Selectors = describe((), "compute only these, and what is upstream")
    min_intervals: int = Field(default=0, ge=0, le=100_000, description="recompute at least so many intervals")
    no_gaps: bool = describe(False, "refuse a new table with gaps that the current one does not have")
    skip_backfill: bool = describe(False, "create tables and views, and leave new tables empty")
    empty_backfill: bool = describe(False, "leave new tables empty, and count them as loaded")
    include_unmodified: bool = describe(False, "give the environment a view of every model")
    ignore_cron: bool = describe(False, "compute up to now, whenever models are due")
    refresh: bool = describe(False, "ask Spark whether views and tables are still there")
    skip_tests: bool = describe(False, "do not run the unit tests first")
    rerun_tests: bool = describe(False, "also run the unit tests that have not changed")
    skip_linter: bool = describe(False, "do not run the linter first")
    strict: bool = describe(False, "plan nothing if a model cannot be opened")


class RestatementBody(Closed):
    """What is computed again."""

    models: Selectors = Field(min_length=1, description="selectors of models to recompute, with all downstream")
    environment: EnvironmentName = describe(PROD, "where")
    start: Date | None = describe(None, "from this day on only")
    end: Date | None = describe(None, "up to and including this day only")


class ApplyBody(Note):
    """How a plan is applied."""


class RunBody(Note):
    """What runs."""

    environment: EnvironmentName = describe(PROD, "which environment")
    start: Date | None = describe(None, "compute from this day on only")
    end: Date | None = describe(None, "compute up to and including this day only")
    select: Selectors = describe((), "only these models, and what they read")
    ignore_cron: bool = describe(False, "compute up to now, whenever models are due")


class RollbackBody(Note):
    """Where an environment goes back to."""

    revision: int | None = Field(default=None, ge=1, le=2**31 - 1, description="the revision; else the one before")


class AuditBody(Closed):
    """Which audits run, and on which rows."""

    environment: EnvironmentName = describe(PROD, "whose tables")
    select: Selectors = describe((), "only these models' audits")
    start: Date | None = describe(None, "look at rows from this day on only")
    end: Date | None = describe(None, "look at rows up to and including this day only")


class TestBody(Closed):
    """Which unit tests run."""

    __test__ = False  # pytest must not collect it

    names: Selectors = describe((), "tests, models, files or FILE::TEST, also as globs; none: all")
    patterns: Selectors = describe((), "what their names contain or match")


class TableDiffBody(Closed):
    """What is compared."""

    first: Name = Field(description="an environment, or a table with its schema")
    second: Name = Field(description="another one")
    model: Name | None = describe(None, "the model, of two environments")
    on: tuple[Name, ...] = Field(default=(), max_length=50, description="the key's columns; else the model's grain")
    skip: tuple[Name, ...] = Field(default=(), max_length=500, description="columns not to compare")
    where: Sql = describe("", "only rows for which this holds: it needs the scope `apply`")
    samples: int = Field(default=0, ge=0, le=20, description="how many rows of each sort are shown, masked")


class DataDiffBody(Closed):
    """Whose rows are compared with prod's."""

    environment: EnvironmentName = Field(min_length=1, description="the environment")
    models: tuple[Name, ...] = Field(default=(), max_length=200, description="only these models; none: all that differ")
    detail: Detail = describe("counts", "how much is shown; samples are masked")
    where: Sql = describe("", "only rows for which this holds: it needs the scope `apply`")


class PhysicalPlanBody(Closed):
    """Whose queries are explained beside prod's."""

    environment: EnvironmentName = Field(min_length=1, description="the environment")


class EvaluationBody(Closed):
    """What rows of a model's query are fetched."""

    model: Name = Field(description="the model, which has a query")
    start: Date | None = describe(None, "as if computing from this day")
    end: Date | None = describe(None, "as if computing up to and including this day")
    execution_time: Date | None = describe(None, "as if it were this moment")
    limit: int = Field(default=100, ge=1, le=1000, description="how many rows at most")


class Jobs:
    """Makes jobs for one project and one sender."""

    def __init__(self, settings: SessionSettings, who: str) -> None:
        self._settings, self._who = settings, who

    def plan(self, body: PlanBody) -> JobRequest:
        options = _body_options(
            body, skip={"environment", "categories", "select", "backfill", "allow_destructive", "allow_additive"}
        )
        options += [f"--categorize={model}={category}" for model, category in body.categories.items()]
        options += _repeat_option("select-model", body.select) + _repeat_option("backfill-model", body.backfill)
        options += _repeat_option("allow-destructive-model", body.allow_destructive)
        options += _repeat_option("allow-additive-model", body.allow_additive)
        named = [body.environment] if body.environment else []
        return self._make_request(
            JobKind.PLAN, [*options, "--no-prompts", f"--who={self._who}"], named, body, body.environment
        )

    def restatement(self, body: RestatementBody) -> JobRequest:
        options = [*_repeat_option("restate-model", body.models), *_body_options(body, skip={"models", "environment"})]
        named = [body.environment or PROD]
        return self._make_request(JobKind.RESTATEMENT, [*options, "--no-prompts"], named, body, named[0])

    def apply(self, plan_id: str, environment: str, body: ApplyBody) -> JobRequest:
        return self._make_request(JobKind.APPLY, _body_options(body), [plan_id], body, environment, plan_id)

    def run(self, body: RunBody) -> JobRequest:
        named = [body.environment or PROD]
        options = [*_body_options(body, skip={"environment", "select"}), *_repeat_option("select-model", body.select)]
        return self._make_request(JobKind.RUN, options, named, body, named[0])

    def rollback(self, environment: str, body: RollbackBody) -> JobRequest:
        options = [f"--to={body.revision}"] if body.revision else []
        options += [f"--who={self._who}", f"--note={body.note}"]
        return self._make_request(JobKind.ROLLBACK, options, [environment], body, environment)

    def invalidate(self, environment: str) -> JobRequest:
        return self._make_request(JobKind.INVALIDATE, [f"--who={self._who}"], [environment], Closed(), environment)

    def audit(self, body: AuditBody) -> JobRequest:
        """Return the request to audit what tables hold; bad rows are masked."""
        named = [body.environment or PROD]
        options = [
            *_body_options(body, skip={"environment", "select"}),
            *_repeat_option("model", body.select),
            "--samples=masked",
        ]
        return self._make_request(JobKind.AUDIT, options, named, body, named[0])

    def test(self, body: TestBody) -> JobRequest:
        return self._make_request(
            JobKind.TEST, [part for text in body.patterns for part in ("-k", text)], [*body.names], body
        )

    def table_diff(self, body: TableDiffBody) -> JobRequest:
        """Return the request to compare tables; rows are masked."""
        options = [*_repeat_option("on", body.on), *_repeat_option("skip-columns", body.skip), "--masked"]
        options += [f"--where={body.where}"] if body.where else []
        options += ["--show-sample", f"--limit={body.samples}"] if body.samples else []
        named = [f"{body.first}:{body.second}", *([body.model] if body.model else [])]
        return self._make_request(JobKind.TABLE_DIFF, options, named, body)

    def data_diff(self, body: DataDiffBody) -> JobRequest:
        """Return the request to compare an environment's rows with prod's; samples are masked."""
        options = [f"--detail={body.detail}", *([f"--where={body.where}"] if body.where else [])]
        return self._make_request(JobKind.DATA_DIFF, options, [body.environment, *body.models], body, body.environment)

    def physical_plan(self, body: PhysicalPlanBody) -> JobRequest:
        return self._make_request(JobKind.PHYSICAL_PLAN, [], [body.environment], body, body.environment)

    def evaluation(self, sql: str, body: EvaluationBody) -> JobRequest:
        return self._make_request(JobKind.EVALUATION, [f"--limit={body.limit}"], [sql], body)

    def _make_request(
        self,
        kind: JobKind,
        options: list[str],
        named: list[str],
        body: Closed,
        environment: str = "",
        plan_id: str = "",
    ) -> JobRequest:
        project = [f"--project={self._settings.root}"]
        project += [f"--gateway={self._settings.gateway}"] if self._settings.gateway else []
        arguments = (VERBS[kind], *options, "--output=json", *project, "--", *named)
        request: dict[str, object] = body.model_dump(mode="json", exclude_defaults=True)
        return JobRequest(kind, arguments, request, environment, plan_id, self._who)


VERBS: Mapping[JobKind, str] = {
    **{kind: str(kind) for kind in JobKind},
    JobKind.RESTATEMENT: "plan",
    JobKind.EVALUATION: "fetchdf",
}


def _body_options(body: Closed, skip: frozenset[str] | set[str] = frozenset()) -> list[str]:
    """Return the options with the names of a body's fields, without fields that are not set."""
    return [text for name, value in body if name not in skip for text in _format_option(name.replace("_", "-"), value)]


def _format_option(name: str, value: object) -> Iterator[str]:
    match value:
        case None | "":
            return
        case bool():
            if value:
                yield f"--{name}"
            elif name == "enable-preview":
                yield "--no-enable-preview"
        case int() | str():
            yield f"--{name}={value}"
        case _:
            raise AssertionError(f"{name} is no option of one value")


def _repeat_option(name: str, values: tuple[str, ...]) -> list[str]:
    return [f"--{name}={value}" for value in values]
