"""Define the jobs of maintenance: a restatement on demand, audits, freshness, unit tests, and the janitor."""

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from mergeplan.dagster.assets import AssetOptions, resource_of
from mergeplan.dagster.request import Mode, decide_request
from mergeplan.dagster.running import Event, ReportedRun, run_tags

VERBS = {
    "audit": "Runs the audits on what the tables hold now; each is a check of its asset.",
    "freshness": "Measures how old tables are, and fails if one is older than its `error_after`.",
    "test": "Runs the project's unit tests.",
    "janitor": "Drops the environments that have expired, and tables that nothing refers to.",
}
CRONS: Mapping[str, str] = {"janitor": "30 4 * * *", "audit": "30 5 * * *"}


class RestateConfig(dg.Config):
    """What is computed again."""

    models: list[str] = Field(description="The models, by name or selector.")
    start: str = Field(default="", description="The first day; without it the models are computed again as a whole.")
    end: str = Field(default="", description="The last day.")


def build_maintenance_jobs(options: AssetOptions, name: str) -> dict[str, dg.JobDefinition]:
    jobs = {verb: build_verb_job(options, name, verb) for verb in VERBS}
    return {"restate": build_restate_job(options, name), **jobs}


def build_restate_job(options: AssetOptions, name: str) -> dg.JobDefinition:
    """Return the job that computes models again, with everything downstream."""
    description = "Computes models again, with all that reads them, as the run's configuration says."

    @dg.op(name=f"{name}_restate_models", **_op_arguments(options), description=description)
    def restate_models(context: dg.OpExecutionContext, config: RestateConfig) -> Iterator[Event]:
        if not config.models:
            raise dg.Failure("The run's configuration names no models to compute again.", allow_retries=False)
        mergeplan = resource_of(context, options)
        run, tags = ReportedRun(context, mergeplan, options.translator, options.partitions), run_tags(context)
        days = config.start, config.end
        yield from run.events(
            decide_request(mergeplan.target_environment, tuple(config.models), None, Mode.RESTATE, tags, days)
        )

    @dg.job(name=f"{name}_restate", description=description)
    def restate_job() -> None:
        restate_models()

    return restate_job


def build_verb_job(options: AssetOptions, name: str, verb: str) -> dg.JobDefinition:
    @dg.op(name=f"{name}_{verb}_verb", **_op_arguments(options), description=VERBS[verb])
    def call_verb(context: dg.OpExecutionContext) -> Iterator[Event]:
        mergeplan = resource_of(context, options)
        run = ReportedRun(context, mergeplan, options.translator, options.partitions)
        yield from run.look()
        environment = (mergeplan.target_environment,) if verb in ("audit", "freshness") else ()
        yield from run.verb_events(verb, *environment, "--output", "json")

    @dg.job(name=f"{name}_{verb}", description=VERBS[verb])
    def verb_job() -> None:
        call_verb()

    return verb_job


def build_maintenance_schedules(
    jobs: Mapping[str, dg.JobDefinition], crons: Mapping[str, str], *, running: bool
) -> Iterator[dg.ScheduleDefinition]:
    """Yield the schedules of verbs that have a cron, in UTC; raise ValueError for an unknown verb."""
    status = dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED
    for verb, cron in crons.items():
        if verb not in VERBS:
            raise ValueError(f"`{verb}` is no job with a schedule: write one of {', '.join(VERBS)}.")
        if cron:
            job = jobs[verb]
            yield dg.ScheduleDefinition(
                name=f"{job.name}_schedule",
                job=job,
                cron_schedule=cron,
                execution_timezone="UTC",
                default_status=status,
            )


def _op_arguments(options: AssetOptions) -> dict[str, Any]:
    return {
        "out": {}, "retry_policy": options.retry_policy, "pool": options.pool,
        "required_resource_keys": {options.resource},
    }  # fmt: skip
