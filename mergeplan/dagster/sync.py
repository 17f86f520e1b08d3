"""What the state has and Dagster does not know: tables that a merge promoted, and time that other processes filled.

A merge computes nothing: it shows tables that a pull request built. A run from a terminal, or one whose Dagster process
was killed, fills tables too. Both are read from the state, and only what is new becomes an event.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import dagster as dg

from mergeplan.dagster.grid import instant
from mergeplan.dagster.recorder import HELD, Recorder
from mergeplan.dagster.translator import asset_models, is_view
from mergeplan.dagster.versions import CODE_VERSION, table_data_version
from mergeplan.planner.contract.schedule import ScheduledModel

PARTITIONS = 30  # newest ones of a model that are reported


def missing_events(
    recorder: Recorder, limit: int = PARTITIONS, most: float = math.inf
) -> Iterator[dg.AssetMaterialization]:
    """Yield the events that Dagster lacks, parents first; each must be stored before the next is requested.

    For a model with many partitions only the `limit` newest are reported. After `most` events no other model is
    started; the next look at the state continues there.
    """
    count = 0
    for model in asset_models(recorder.deployment):
        if count >= most:
            return
        for event in _model_events(recorder, model, limit):
            yield event
            count += 1


def _model_events(recorder: Recorder, model: ScheduledModel, limit: int) -> Iterator[dg.AssetMaterialization]:
    if is_view(model):
        if event := recorder.view(model):
            yield event
    else:
        yield from _table_events(recorder, model, limit)


def materialize_views(recorder: Recorder) -> Iterator[dg.AssetMaterialization]:
    """Yield an event for each view that reads, directly or through others, a model that got an event."""
    for model in asset_models(recorder.deployment):
        parents = recorder.deployment.parents[model.name]
        if is_view(model) and any(name in recorder.touched for name in parents) and (event := recorder.view(model)):
            yield event


def _table_events(recorder: Recorder, model: ScheduledModel, limit: int) -> Iterator[dg.AssetMaterialization]:
    """Yield events for partitions of a table, or the table, that Dagster does not know or knows in another version."""
    loaded_spans = recorder.deployment.held.get(model.name, ())
    latest_event = recorder.latest.get(model.name)
    same_code = latest_event is not None and (latest_event.tags or {}).get(CODE_VERSION) == model.fingerprint
    same_table = latest_event is not None and recorder.table_before(model) == model.table
    keys = (
        [key for span in loaded_spans for key in recorder.partitions_of(model, span)][-limit:] if loaded_spans else []
    )
    keys = [*dict.fromkeys(keys)]
    if same_code and same_table:
        keys = _unknown(recorder, model, keys, latest_event)
    versions = recorder.versions(model) if keys and same_table and not same_code else {}  # no row was written
    revision = recorder.deployment.schedule.revision
    origin = "filled by another process" if same_code and same_table else f"promoted with revision {revision}"
    for key in keys:
        version = versions.get(key) or table_data_version(model.table, key, recorder.writer)
        yield recorder.event(model, key, version, {"mergeplan/how": origin})


def _unknown(
    recorder: Recorder, model: ScheduledModel, keys: list[str | None], before: dg.AssetMaterialization | None
) -> list[str | None]:
    """Return the partitions that Dagster has no event of; a whole table if it was filled further since."""
    if keys == [None]:
        reported = before.metadata.get(HELD) if before else None
        loaded_until = recorder.deployment.held[model.name][-1][1]
        return [] if reported and instant(str(reported.value)) >= instant(loaded_until) else keys
    reported_keys = recorder.instance.get_materialized_partitions(recorder.translator.get_asset_key(model.name))
    return [key for key in keys if key not in reported_keys]
