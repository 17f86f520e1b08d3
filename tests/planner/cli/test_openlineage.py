"""OpenLineage from outside: a plan that is applied tells what ran, and goes on where nobody listens."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import ALONE, FILES

CONFIG = FILES["config.yaml"] + "openlineage: {namespace: acme, %s}\n"
ONE = {**ALONE, "total": "MODEL (name shop.total, kind FULL, description 'All.');\nSELECT 7 AS total"}


def test_a_plan_tells_its_runs_to_a_file_and_fails_for_no_server(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ONE, config=CONFIG % "file: lineage.jsonl")
    ran = mergeplan("plan", "--auto-apply")
    told = [json.loads(line) for line in (mergeplan.root / "lineage.jsonl").read_text().splitlines()]
    mergeplan.edit("config.yaml", "file: lineage.jsonl", "url: 'http://127.0.0.1:9', api_key: s3cret")
    mergeplan.edit("models/total.sql", "7", "8")
    again = mergeplan("plan", "--auto-apply", "-o", "json")

    assert (ran.code, again.code) == (0, 0)
    assert [(event["eventType"], event["job"]["name"]) for event in told] == [
        ("START", "plan.prod"), ("START", "shop.total"), ("COMPLETE", "shop.total"), ("COMPLETE", "plan.prod"),
    ]  # fmt: skip
    assert told[2]["outputs"][0]["facets"]["documentation"]["description"] == "All."
    warning = next(line for line in again.lines if line["event"] == "warning")
    assert warning["message"].startswith("OpenLineage: 4 events did not reach http://127.0.0.1:9: it cannot be reached")
    assert "s3cret" not in again.out + again.err


def test_the_base_branch_rules_over_where_events_go(offline: CommandLine) -> None:
    from mergeplan.planner.project.loader import LoadOptions, load_project
    from tests.planner.shop import NOW, write_shop

    write_shop(offline.root, config=CONFIG % "url: 'https://evil.example', api_key: x")
    base = offline.root / "base.yaml"
    base.write_text(CONFIG % "url: 'https://lineage.internal', api_key: s3cret")

    endpoint = load_project(offline.root, NOW, options=LoadOptions(gateways_from=base)).config.openlineage

    assert endpoint is not None
    assert endpoint.address == "https://lineage.internal/api/v1/lineage"
    assert "s3cret" not in repr(endpoint)
