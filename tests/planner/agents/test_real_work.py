"""An agent's way in `dev`, by real jobs on Spark: plan, apply, audit, test and both diffs; prod stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from tests.planner.agents.sessions import Person, converse, data, finish
from tests.planner.shop import FILES, write_shop

CHECKS = (
    ("run_audits", {"environment": "dev"}),
    ("run_tests", {}),
    ("data_diff", {"environment": "dev", "detail": "sample"}),
    ("physical_plan", {"environment": "dev"}),
)
DAILY = FILES["models/daily.sql"].replace(", batch_size 1", "")  # one batch of all days
EDITED = DAILY.replace("SELECT id, day, price FROM", "SELECT id, day, price + 1 AS price FROM")
AUDITED = """MODEL (name shop.total, kind FULL, audits (forall_non_blocking(criteria := (total < 0))));
SELECT sum(price) AS total, 'ann@shop.example' AS email FROM shop.daily"""
TEST = """test_total:
  model: shop.total
  inputs: {shop.daily: {rows: [{id: 1, day: 2026-01-01, price: 2}]}}
  outputs: {query: {rows: [{total: 2, email: ann@shop.example}]}}
"""


def apply_prod(root: Path) -> None:
    """Make prod show the project."""
    command = [sys.executable, "-m", "mergeplan", "plan", "--auto-apply", "-p", str(root)]
    environment = {**os.environ, "MERGEPLAN_HOME": str(root / ".mergeplan")}
    subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.mark.prove
def test_an_agent_plans_applies_and_checks_an_edit(tmp_path: Path) -> None:
    write_shop(tmp_path, apart="", daily=DAILY, config=FILES["config.yaml"] + "audits: {show_samples: full}\n")
    apply_prod(tmp_path)
    (tmp_path / "models/daily.sql").write_text(EDITED)
    (tmp_path / "models/total.sql").write_text(AUDITED)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_total.yaml").write_text(TEST)

    async def script(client: Client) -> list[dict[str, Any]]:
        plan = await finish(client, await client.call_tool("make_plan", {"environment": "dev"}))
        jobs = [plan, await finish(client, await client.call_tool("apply_plan", {"plan_id": plan["plan_id"]}))]
        jobs += [await finish(client, await client.call_tool(name, arguments)) for name, arguments in CHECKS]
        history = [data(await client.call_tool("history", {"environment": name})) for name in ("prod", "dev")]
        return [*jobs, data(await client.call_tool("audits", {"environment": "dev"})), *history]

    answers = converse(tmp_path, script, person=Person(approves=True))
    plan, applied, audits, tests, diff, physical, recorded, prod, dev = answers

    assert [job["status"] for job in (plan, applied, audits, tests, diff, physical)] == ["done"] * 6, answers
    assert {row["name"] for row in plan["plan"]["models"] if row["intervals"]} == {"shop.daily", "shop.total"}
    assert (applied["result"]["applied"], prod["total"], dev["total"]) == (True, 1, 1)
    failing = [check for check in audits["checks"] if not check["ok"]]
    assert [(check["model"], check["count"], check["blocking"]) for check in failing] == [("shop.total", 1, False)]
    assert [check["name"] for check in tests["checks"] if check["ok"]] == ["test_total"]
    assert {row["model"]: row["rows"]["changed"] for row in diff["result"]["data_diff"] if row["rows"]}
    assert "physical_plan" in physical["result"]
    assert {row["outcome"] for row in recorded["audits"]} == {"passed", "warned"}
    shown = json.dumps([applied["result"], audits, diff["result"]["data_diff"]])
    assert '"sample"' not in shown and '["ann@shop.example"' not in shown
