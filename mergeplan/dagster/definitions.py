"""All that a deployment of an environment gives Dagster: assets, checks, the job that runs it, schedules, a sensor."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from mergeplan.dagster.assets import AssetOptions, build_all_assets, build_outside, build_run_op
from mergeplan.dagster.deployment import Deployment
from mergeplan.dagster.maintenance import CRONS, build_maintenance_jobs, build_maintenance_schedules
from mergeplan.dagster.names import word
from mergeplan.dagster.recorder import Recorder
from mergeplan.dagster.resource import MergeplanResource
from mergeplan.dagster.sync import PARTITIONS, missing_events
from mergeplan.dagster.translator import MergeplanTranslator
from mergeplan.planner.intervals import NAMED

MOST = 300  # events after which the sensor leaves the next model to its next look: a look must end in time


@dataclass(frozen=True)
class MergeplanOptions:
    """How the definitions are made; `name` is the key of the resource, and begins the names of jobs and the like."""

    translator: MergeplanTranslator = field(default_factory=MergeplanTranslator)
    name: str = "mergeplan"
    retry_policy: dg.RetryPolicy | None = None  # of every run; a retry goes on where the last try ended
    pool: str | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by selector: pool, retry_policy, op_tags
    maintenance: Mapping[str, str] = field(default_factory=lambda: CRONS)  # verb -> when it is scheduled; "": never
    running: bool = False  # the schedules and the sensor run as soon as they are loaded
    external: bool = True  # tables of others are assets, too; two projects that read the same need one of them
    partitions: int = PARTITIONS  # newest ones of a model that are reported after a promotion
    look_seconds: int = 120  # how often the sensor looks at the state

    @property
    def assets(self) -> AssetOptions:
        """What of it the operations need."""
        return AssetOptions(
            self.name,
            self.translator,
            self.retry_policy,
            self.pool,
            partitions=self.partitions,
            by_selector=self.options,
        )


def build_definitions(
    deployment: Deployment, mergeplan: MergeplanResource, options: MergeplanOptions | None = None
) -> dg.Definitions:
    """Return the definitions of an environment; execute nothing of the project."""
    options = options or MergeplanOptions()
    job, upkeep = build_run_job(options), build_maintenance_jobs(options.assets, options.name)
    return dg.Definitions(
        assets=[
            *build_all_assets(deployment, options.assets, options.name),
            *(build_outside(deployment, options.translator) if options.external else ()),
        ],
        jobs=[job, *upkeep.values()],
        schedules=[
            *build_schedules(deployment, job, options),
            *build_maintenance_schedules(upkeep, options.maintenance, running=options.running),
        ],
        sensors=[build_state_sensor(options)],
        resources={options.name: mergeplan},
    )


def build_run_job(options: MergeplanOptions) -> dg.JobDefinition:
    run_due = build_run_op(options.assets, f"{options.name}_run_due")

    @dg.job(name=f"{options.name}_run", description="Runs the models that are due, in one call of mergeplan.")
    def run_job() -> None:
        run_due()

    return run_job


def build_schedules(
    deployment: Deployment, job: dg.JobDefinition, options: MergeplanOptions
) -> Iterator[dg.ScheduleDefinition]:
    """Yield a schedule for each time zone, which ticks when any model is due; other models are not computed."""
    crons: dict[str, dict[str, None]] = {}
    for model in deployment.schedule.models:
        if model.computed and model.cron:
            crons.setdefault(model.time_zone or "UTC", {})[NAMED.get(model.cron.lower(), model.cron)] = None
    status = dg.DefaultScheduleStatus.RUNNING if options.running else dg.DefaultScheduleStatus.STOPPED
    for zone, texts in crons.items():
        suffix = "" if zone == "UTC" else f"_{word(zone).lower()}"
        yield dg.ScheduleDefinition(
            name=f"{options.name}_run{suffix}_schedule",
            job=job,
            cron_schedule=sorted(texts),
            execution_timezone=zone,
            default_status=status,
        )


def build_state_sensor(options: MergeplanOptions) -> dg.SensorDefinition:
    """Return a sensor that reports what Dagster does not know of the state: promotions, and runs of others."""
    status = dg.DefaultSensorStatus.RUNNING if options.running else dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        name=f"{options.name}_state",
        minimum_interval_seconds=options.look_seconds,
        default_status=status,
        required_resource_keys={options.name},
        description="Reports tables that a merge promoted, and time that other processes filled.",
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        mergeplan: MergeplanResource = getattr(context.resources, options.name)
        deployment = mergeplan.read_deployment()
        writer = f"revision {deployment.schedule.revision}"
        recorder = Recorder(context.instance, options.translator, deployment, writer)
        recorder.load()
        count = 0
        for event in missing_events(recorder, options.partitions, MOST):
            context.instance.report_runless_asset_event(event)
            count += 1
        return dg.SkipReason(f"{count} new in the state." if count else "Nothing new in the state.")

    return look
