"""What the proofs do in the environment that has Dagster: a JSON request as argument, the answer on standard output.

It runs there with `python -P tests/dagster/inside.py`, imports nothing of the other tests, and writes one line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from dagster._utils.schedules import schedule_execution_time_iterator

from mergeplan.dagster import MergeplanOptions, MergeplanResource, build_definitions, read_deployment
from mergeplan.dagster.deployment import Deployment
from mergeplan.dagster.grid import Grid
from mergeplan.dagster.request import Request
from mergeplan.planner.contract.schedule import Schedule, ScheduledModel
from mergeplan.planner.contract.wire import Line
from mergeplan.planner.intervals import Cron

HOUR, END = timedelta(hours=1), datetime(2026, 12, 1, tzinfo=UTC)
EVENTS = ("ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION", "STEP_FAILURE", "STEP_RESTARTED")


class Killed(MergeplanResource):
    """Kills mergeplan's process with SIGKILL after the third batch of the first call."""

    mark: str

    def stream(self, request: Request, on_stderr: Callable[[str], None]) -> Iterator[Line]:
        """The lines until the process is killed."""
        for line in super().stream(request, on_stderr):
            yield line
            if line.event == "batch" and line.index == 3 and not Path(self.mark).exists():
                Path(self.mark).touch()
                children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
                for pid in children:
                    os.kill(int(pid), signal.SIGKILL)


def definitions(request: dict[str, Any]) -> tuple[dg.Definitions, Any]:
    """The definitions of the request's deployment, and that deployment."""
    mergeplan = (Killed if "mark" in request["mergeplan"] else MergeplanResource)(**request["mergeplan"])
    path = Path(request["deployment"])
    if request.get("refresh", True):
        path.write_text(mergeplan.read_deployment(lineage=True).model_dump_json())
    deployment = read_deployment(path)
    policy = dg.RetryPolicy(max_retries=request.get("retries", 0), delay=0.1)
    return build_definitions(deployment, mergeplan, MergeplanOptions(retry_policy=policy)), deployment


def outcome(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """The events of a run."""
    return {"success": result.success, "events": [*filter(None, map(event_row, result.all_events))]}


def event_row(event: dg.DagsterEvent) -> dict[str, Any] | None:
    """An event of interest as data."""
    data = event.event_specific_data
    match event.event_type_value:
        case "ASSET_MATERIALIZATION":
            made = data.materialization
            return {
                "made": made.asset_key.to_user_string(),
                "partition": made.partition,
                "metadata": {key: value.value for key, value in made.metadata.items()},
                "tags": dict(made.tags or {}),
            }
        case "ASSET_CHECK_EVALUATION":
            return {
                "check": f"{data.asset_key.to_user_string()}:{data.check_name}",
                "passed": data.passed,
                "partition": data.partition,
                "severity": data.severity.value,
            }
        case "STEP_FAILURE":
            failure = data.user_failure_data
            return {"failure": failure.description if failure else data.error_display_string}
        case "STEP_RESTARTED" | "STEP_UP_FOR_RETRY":
            return {"retry": event.message}
        case _:
            return None


def run(request: dict[str, Any], instance: dg.DagsterInstance) -> dict[str, Any]:
    """The job that runs what is due."""
    defs, _ = definitions(request)
    return outcome(defs.resolve_job_def("mergeplan_run").execute_in_process(instance=instance, raise_on_error=False))


def materialize(request: dict[str, Any], instance: dg.DagsterInstance) -> dict[str, Any]:
    """Assets, with the partitions from one key to another."""
    defs, _ = definitions(request)
    first, last = request["partitions"]
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    return outcome(
        dg.materialize(
            [*(asset for asset in defs.assets or () if isinstance(asset, dg.AssetsDefinition))],
            selection=request["assets"],
            tags=tags | request.get("tags", {}),
            instance=instance,
            resources=dict(defs.resources or {}),
            raise_on_error=False,
        )
    )


def look(request: dict[str, Any], instance: dg.DagsterInstance) -> dict[str, Any]:
    """One tick of the sensor."""
    defs, _ = definitions(request)
    sensor = defs.resolve_sensor_def("mergeplan_state")
    context = dg.build_sensor_context(instance=instance, resources=dict(defs.resources or {}))
    said = sensor.evaluate_tick(context)
    return {"skipped": said.skip_message}


def status(request: dict[str, Any], instance: dg.DagsterInstance) -> dict[str, Any]:
    """What Dagster says of each asset, and of each partition that the table holds."""
    defs, deployment = definitions(request)
    graph = defs.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    said: dict[str, str] = {}
    for model in deployment.models.values():
        key = dg.AssetKey(model.name.split("."))
        is_split = graph.has(key) and graph.get(key).is_partitioned
        spans = deployment.held.get(model.name, ()) if is_split else ()
        keys = [name for span in spans for name in Grid(model.interval_unit).keys(span)] if is_split else [None]
        for name in keys:
            causes = [cause.reason for cause in resolver.get_stale_causes(key, name)]
            said[f"{model.name}|{name or ''}"] = f"{resolver.get_status(key, name).value} {' '.join(causes)}".strip()
    return said


def load(request: dict[str, Any], _instance: dg.DagsterInstance) -> dict[str, Any]:
    """How long it takes to make the definitions of a deployment, and what was imported for it."""
    began = time.process_time()
    deployment = read_deployment(Path(request["deployment"]))
    read = time.process_time()
    defs = build_definitions(deployment, MergeplanResource(project="."))
    made = time.process_time()
    dg.Definitions.validate_loadable(defs)
    checked = time.process_time()
    assets = len(defs.resolve_asset_graph().materializable_asset_keys)
    strangers = sorted({"pyspark", "sqlglot", "pandas"} & sys.modules.keys())
    return {
        "read": read - began, "made": made - read, "checked": checked - made, "assets": assets, "imported": strangers,
    }  # fmt: skip


def describe(request: dict[str, Any], _instance: dg.DagsterInstance) -> dict[str, Any]:
    """What each asset says of itself."""
    defs, _ = definitions(request)
    graph, said = defs.resolve_asset_graph(), {}
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        lineage = node.metadata.get("dagster/column_lineage")
        schema = node.metadata.get("dagster/column_schema")
        said[key.to_user_string()] = {
            "parents": sorted(parent.to_user_string() for parent in node.parent_keys),
            "owners": [*node.owners], "group": node.group_name, "kinds": sorted(node.kinds), "tags": dict(node.tags),
            "code": node.code_version, "materializable": node.is_materializable,
            "columns": [(c.name, c.type) for c in schema.columns] if schema else None,
            "lineage": {
                column: [f"{dep.asset_key.to_user_string()}.{dep.column_name}" for dep in deps]
                for column, deps in lineage.deps_by_column.items()
            } if lineage else None,
            "deciders": node.metadata.get("mergeplan/rows_decided_by"),
            "partitions": str(node.partitions_def) if node.partitions_def else None,
            "checks": sorted(check.name for check in node.check_keys),
        }  # fmt: skip
    return said


def ticks(request: dict[str, Any], _instance: dg.DagsterInstance) -> dict[str, Any]:
    """When models of these crons and time zones are due and no tick of their schedule follows within an hour."""
    late_by_cron = {}
    for zone, cron in request["crons"]:
        row = {"name": "s.a", "kind": "FULL", "computed": True, "cron": cron, "time_zone": zone, "view": "s.a"}
        schedule = Schedule(
            project="p", environment="prod",
            models=(ScheduledModel.model_validate({**row, "fingerprint": "f", "table_version": "v"}),),
        )  # fmt: skip
        defs = build_definitions(Deployment(schedule=schedule), MergeplanResource(project="."))
        own = next(one for one in defs.schedules or () if "_run_" in one.name)
        assert isinstance(own, dg.ScheduleDefinition)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        times = schedule_execution_time_iterator(at.timestamp(), own.cron_schedule, own.execution_timezone)
        runs, due = [*takewhile(lambda run: run < END, times)], []
        while (at := Cron(cron, zone).next_tick(at)) < END - timedelta(days=1):
            due.append(at)
        following = (runs[bisect_left(runs, one) :][:1] for one in due)
        late = [str(one) for one, run in zip(due, following, strict=True) if not run or run[0] > one + HOUR]
        if late:
            late_by_cron[f"{zone} {cron}"] = late
    return late_by_cron


ACTIONS = {
    "ticks": ticks,
    "run": run, "materialize": materialize, "look": look, "status": status, "load": load, "describe": describe,
}  # fmt: skip


def main() -> None:
    """Answer the request."""
    request = json.loads(sys.argv[1])
    with dg.DagsterInstance.get() as instance:
        answer = ACTIONS[request["do"]](request, instance)
    sys.stdout.write(json.dumps(answer, default=str) + "\n")


if __name__ == "__main__":
    main()
