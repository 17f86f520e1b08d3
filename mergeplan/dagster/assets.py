"""The models as assets: all in one operation, which calls mergeplan once for whatever of them is materialized."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import dagster as dg
from pydantic import Field

from mergeplan.dagster.deployment import Deployment, is_by_time
from mergeplan.dagster.grid import Grid
from mergeplan.dagster.names import word
from mergeplan.dagster.request import Mode, Request, decide_request
from mergeplan.dagster.resource import MergeplanResource
from mergeplan.dagster.running import Event, ReportedRun, run_tags
from mergeplan.dagster.sync import PARTITIONS
from mergeplan.dagster.translator import MergeplanTranslator, asset_models
from mergeplan.planner.contract.schedule import ScheduledModel
from mergeplan.selectors import select_models


class MaterializeConfig(dg.Config):
    """What is done about the assets that somebody materializes."""

    mode: str = Field(
        default=str(Mode.AUTO),
        description="`run` computes what is missing, `restate` computes it again with all that reads it; `auto` "
        "restates partitions that a person asks for, and runs anything else.",
    )


@dataclass(frozen=True)
class AssetOptions:
    """How the operations are made; `resource` is the key of the MergeplanResource.

    `by_selector` has other values of `retry_policy`, `pool` and `op_tags` for the models that a selector means.
    """

    resource: str
    translator: MergeplanTranslator
    retry_policy: dg.RetryPolicy | None = None
    pool: str | None = None
    op_tags: Mapping[str, Any] = field(default_factory=dict)
    partitions: int = PARTITIONS
    by_selector: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def build_all_assets(
    deployment: Deployment, options: AssetOptions, name: str = "mergeplan"
) -> Iterator[dg.AssetsDefinition]:
    """Yield an operation for each set of selectors with options, and one for all other models of an environment.

    If two selectors select one model, the later one decides.
    """
    chosen = {selector: select_models(deployment.models, selector) for selector in options.by_selector}
    members: dict[tuple[str, ...], list[ScheduledModel]] = {}
    for model in asset_models(deployment):
        members.setdefault(tuple(key for key, names in chosen.items() if model.name in names), []).append(model)
    for selectors, models in members.items():
        selector_options = [options.by_selector[selector] for selector in selectors]
        merged = replace(options, **{key: value for values in selector_options for key, value in values.items()})
        yield build_assets(deployment, models, merged, "_".join((name, *map(word, selectors))))


def build_assets(
    deployment: Deployment, models: Sequence[ScheduledModel], options: AssetOptions, name: str
) -> dg.AssetsDefinition:
    """Return models of an environment as one subsettable operation, with their checks."""
    translator = options.translator
    by_key = {translator.get_asset_key(model.name): model for model in models}

    @dg.multi_asset(
        name=name,
        specs=[translator.get_asset_spec(model, deployment) for model in models],
        check_specs=[spec for model in models for spec in translator.get_check_specs(model, deployment)],
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        retry_policy=options.retry_policy,
        pool=options.pool,
        op_tags=options.op_tags,
        required_resource_keys={options.resource},
    )
    def materialize(context: dg.AssetExecutionContext, config: MaterializeConfig) -> Iterator[Event]:
        mergeplan = resource_of(context, options)
        chosen = tuple(model for key, model in by_key.items() if key in context.selected_asset_keys)
        window = partition_window(context, chosen)
        names = tuple(model.name for model in chosen if model.computed)
        run = ReportedRun(context.op_execution_context, mergeplan, translator, options.partitions)
        tags = run_tags(context.op_execution_context)
        request = decide_request(mergeplan.target_environment, names, window, Mode(config.mode), tags)
        yield from run.events(request) if names else run.look()
        yield from observe_unchanged(context, run, chosen, window)

    return materialize


def build_outside(deployment: Deployment, translator: MergeplanTranslator) -> list[dg.AssetSpec]:
    """Return the external tables that models read, as assets that Dagster does not materialize here."""
    return [
        dg.AssetSpec(translator.get_asset_key(name), group_name="external", kinds={"spark"}, metadata=_outside(model))
        for name in deployment.outside
        for model in (deployment.models.get(name),)
    ]


def _outside(model: ScheduledModel | None) -> Mapping[str, dg.TableSchema]:
    if model is None or model.columns is None:
        return {}
    columns = [dg.TableColumn(c.name, c.type or "unknown", c.description or None) for c in model.columns]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}


def build_run_op(options: AssetOptions, name: str = "mergeplan_run_due") -> dg.OpDefinition:
    """Return the operation that runs all that is due in the environment, in any partitions."""

    @dg.op(
        name=name,
        out={},
        retry_policy=options.retry_policy,
        pool=options.pool,
        required_resource_keys={options.resource},
        description="Runs the models that are due, in one call of mergeplan.",
    )
    def run_due(context: dg.OpExecutionContext) -> Iterator[Event]:
        mergeplan = resource_of(context, options)
        run = ReportedRun(context, mergeplan, options.translator, options.partitions)
        yield from run.events(Request(mergeplan.target_environment))

    return run_due


def resource_of(context: dg.OpExecutionContext | dg.AssetExecutionContext, options: AssetOptions) -> MergeplanResource:
    """Return the resource by its key, which differs between two projects in one code location."""
    resource: MergeplanResource = getattr(context.resources, options.resource)
    return resource


def partition_window(
    context: dg.AssetExecutionContext, models: tuple[ScheduledModel, ...]
) -> tuple[datetime, datetime] | None:
    """Return the time of the partitions that are materialized; None in a run without partitions."""
    if not (context.has_partition_key or context.has_partition_key_range):
        return None
    unit = next(model.interval_unit for model in models if is_by_time(model))
    keys = context.partition_key_range
    return Grid(unit).span(keys.start, keys.end)


def observe_unchanged(
    context: dg.AssetExecutionContext,
    run: ReportedRun,
    models: tuple[ScheduledModel, ...],
    window: tuple[datetime, datetime] | None,
) -> Iterator[Event]:
    """Yield an event for each chosen model that needed no work: its version is unchanged, and it counts as done."""
    recorder = run.recorder
    for chosen in models:
        model = recorder.deployment.models.get(chosen.name)
        if model is None or model.name in recorder.touched:
            continue
        versions = recorder.versions(model)
        keys = context.partition_keys if window and is_by_time(model) else [None]
        for key in keys:
            if version := versions.get(key):
                yield recorder.event(model, key, version, {"mergeplan/unchanged": True})
