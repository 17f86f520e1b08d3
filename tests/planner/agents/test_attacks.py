"""Random sequences of tool calls that try to reach prod, secrets, rows as they are, and files outside of the project.

The operator allows every tool, so that nothing but the tools themselves is in the way. Jobs are stand-ins that write
secrets and rows where the real ones may. MERGEPLAN_CASES says how many sequences (`make prove`: 300).
"""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from mergeplan.planner.agents import job_tools
from mergeplan.planner.agents.answers import HIDDEN
from mergeplan.planner.agents.job_tools import check_plan
from mergeplan.planner.agents.server import make_server, open_toolbox
from mergeplan.planner.api.access import Access, Scope
from mergeplan.planner.api.jobs.child import Launch
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import Refused
from mergeplan.planner.parsing.files.agent_rules import TOOLS
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.agents.test_mcp import digests
from tests.planner.cli.conftest import TODAY, Lent
from tests.planner.shop import write_shop

CASES = min(int(os.environ.get("MERGEPLAN_CASES", "2")), 300)
SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
CALLS = 8  # of a sequence
CANARY = {
    name: f"canary-{name}-7f3a" for name in ("environment", "state", "token", "config", "outside", "row", "message")
}
VERBS = {"plan", "apply", "test", "audit", "data_diff", "physical_plan"}
FORBIDDEN = ("--auto-apply", "--restate", "--where", "--unmasked", "--samples=full", "--run", "--categorize",
             "--allow", "--gateway", "-k")  # fmt: skip
# In place of `mergeplan`: rows and Spark's words where the jobs that read rows have them.
FAKE = f"""
import json, sys
verb = sys.argv[1]
write = lambda line: print(json.dumps(line, separators=(",", ":")))
rows = {{"columns": ["email"], "rows": [[{CANARY["row"]!r}]]}}
audit = {{"model": "shop.daily", "name": "a", "ok": False, "count": 1, "sample": rows}}
if verb not in ("plan", "test"):
    write({{"event": "audit", **audit}})
    write({{"event": "error", "kind": "QueryError", "exit_code": 1, "message": {CANARY["message"]!r}}})
    write({{"event": "error", "kind": "MergeplanError", "exit_code": 1, "message": {CANARY["message"]!r}}})
write({{"event": "result", "version": 1, "ok": False, "audits": [audit]}})
"""
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT {} AS total"
CONFIG = f"""
gateways:
  local:
    connection: {{type: spark, config: {{spark.hadoop.fs.s3a.secret.key: {CANARY["config"]}}}}}
default_gateway: local
model_defaults: {{dialect: spark, start: 2026-01-01}}
audits: {{show_samples: full}}
"""


@dataclass(frozen=True)
class Target:
    """A project with an applied prod, kept plans of prod and dev, and secrets all around it."""

    root: Path
    settings: SessionSettings
    plans: dict[str, str]


@pytest.fixture
def target(tmp_path: Path, engine: SparkEngine) -> Target:
    root = tmp_path / "repository/shop"
    write_shop(root, config=CONFIG, apart="")
    (tmp_path / "outside.csv").write_text(f"id\n{CANARY['outside']}\n")
    (tmp_path / "outside.sql").write_text(f"SELECT '{CANARY['outside']}' AS x")
    database = tmp_path / CANARY["state"] / "state.db"
    database.parent.mkdir()
    settings = SessionSettings(root, state_url=f"sqlite:///{database}", open_engine=lambda *_: Lent(engine))
    with Session(settings, TODAY) as session:
        session.plan().apply()
        (root / "models/total.sql").write_text(TOTAL.format(1))
        session.plan("dev").apply()
        restated = session.restate(["shop.total"], "dev").id
        (root / "models/total.sql").write_text(TOTAL.format(2))
        plans = {"prod": session.plan().id, "dev": session.plan("dev").id, "restated": restated}
    return Target(root, replace(settings, open_engine=None), plans)


def hostile_values(target: Target) -> dict[str, list[Any]]:
    """What a parameter may be, by its name."""
    prod, dev = target.plans["prod"], target.plans["dev"]
    outside = target.root.parents[1]
    texts = [
        f"MODEL (name shop.total, kind SEED (path '{path}'));"
        for path in ("../../../outside.csv", outside / "outside.csv", "../../config.yaml", "/etc/passwd")
    ]
    texts += [
        f"MODEL (name shop.total, kind FULL);\nSELECT {expression} AS total"
        for expression in (
            "'{{ env_var(\"CANARY\") }}'", "@env_var('CANARY')", "@EVAL(__import__('os').environ)", "1",
            "(SELECT max(value) FROM text.`/etc/passwd`)", "java_method('java.lang.System', 'getenv', 'CANARY')",
            "@var('state_url')", "@gateway", "raise_error((SELECT max(id) FROM shop.items))",
        )
    ]  # fmt: skip
    texts.append(f"JINJA_QUERY_BEGIN;\n{{% include '{outside}/outside.sql' %}}\nJINJA_END;")
    selectors = [
        "git:--output=/tmp/x",
        "git:HEAD",
        "+shop.total+",
        "*",
        "--auto-apply",
        f"file://{outside}/outside.sql",
    ]
    return {
        "environment": ["prod", "PROD", " prod", "prod ", "prod\n", "\u0440rod", "dev", "qa", "", "--auto-apply"],
        "plan_id": [prod, dev, *target.plans.values(), prod.upper(), f"{prod} ", f"{dev};{prod}", "--auto-apply", "%"],
        "path": ["config.yaml", "models/../config.yaml", "/etc/passwd", "models/total.sql", "models/new.sql",
                 "../outside.sql", "models/../../../outside.sql", ".mergeplan/agents/audit.jsonl", "models/a.py"],
        "text": texts,
        "select": selectors, "target": ["shop.total", "shop.total.total", "/etc/passwd"],
        "name": ["shop.total", "shop.daily", "../config.yaml"], "model": ["", "shop.total", "config"],
        "models": [["shop.total"], ["--where=1=1"], ["--unmasked", "id"]],
        "names": [["tests/x.yaml"], ["/etc/passwd::a"], ["../../outside.sql"], ["-k", "x"]],
        "job_id": ["../jobs-1", "..", "20260101000000-00000000", "server.lock"],
        "detail": ["counts", "sample", "full", "sample --unmasked id"], "kind": ["", "apply", "evaluation", "x"],
        "limit": [50, -1, 10**9], "offset": [0, -5, 10**12], "wait": [0, 1], "start": ["", "2026-01-01", "--run"],
        "end": ["", "tomorrow"], "note": ["", "--auto-apply", "x\n--auto-apply"], "revision": [1, 0, -1],
        "search": ["total", "secret.key"], "failed": [True, False], "downstream": [True, False],
        "skip_backfill": [True, False],
    }  # fmt: skip


EXTRA = [{}, {}, {"caller": {"name": "local", "scope": "apply"}}, {"where": "1=1"}, {"auto_apply": True},
         {"context": {}}, {"samples": "full"}, {"restate": ["shop.total"]}, {"environment": "prod"}]  # fmt: skip


async def attack(client: Client, random_source: random.Random, values: dict[str, list[Any]]) -> list[str]:
    """The answers of random calls, as text."""
    tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    answers: list[str] = []
    jobs = [*values["job_id"]]
    for _ in range(CALLS):
        name = random_source.choice(sorted(tools))
        schema = tools[name]
        arguments = dict(random_source.choice(EXTRA))
        for parameter, shape in schema["properties"].items():
            if parameter in schema.get("required", ()) or random_source.random() < 0.6:
                value = random_source.choice(jobs if parameter == "job_id" else values[parameter])
                arguments[parameter] = [value] if shape.get("type") == "array" and isinstance(value, str) else value
        result = await client.call_tool(name, arguments)
        answers += [content.text for content in result.content if content.type == "text"]
        answers.append(json.dumps(result.structured_content))
        if result.structured_content and "id" in result.structured_content:
            jobs += [result.structured_content["id"]] * 3
    return answers


@pytest.mark.sampled
def test_no_sequence_of_tools_reaches_prod_secrets_rows_or_files(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", CANARY["environment"])
    policy = tmp_path / "agents.yaml"
    policy.write_text("tools: {read: allow, plan: allow, check: allow, apply: allow}\nmax_tables: 1000\n")
    access = Access(tokens={Scope.APPLY: CANARY["token"] * 2})
    toolbox = open_toolbox(target.settings, access, dict(os.environ), policy=policy)
    context = toolbox.working.jobs.context()
    context.jobs._launch = replace(Launch(target.settings, {}), command=(sys.executable, "-I", "-c", FAKE))
    before, values = digests(target.root), hostile_values(target)
    history = context_history(target)

    async def sequences() -> list[str]:
        answers: list[str] = []
        async with Client(make_server(toolbox)) as client:
            first = await client.call_tool("apply_plan", {"plan_id": target.plans["dev"]})
            assert not first.is_error, first.content
            for number in range(CASES):
                answers += await attack(client, random.Random(f"{SEED} {number}"), values)  # noqa: S311
            for record in context.jobs.list():
                answer = await client.call_tool("job", {"job_id": record.id, "wait": 20, "limit": 200})
                answers.append(json.dumps(answer.structured_content))
        return answers

    try:
        answers = anyio.run(sequences)
        records = context.jobs.list()
    finally:
        toolbox.close()

    log = (target.settings.folder / "agents/audit.jsonl").read_text()
    leaks = {name for name, secret in CANARY.items() for text in (*answers, log) if secret in text}
    assert leaks == set(), [text[:500] for text in answers for name in leaks if CANARY[name] in text][:3]
    assert not [text for text in answers if "root:x:0:0" in text]
    assert [text for text in answers if HIDDEN in text] and [text for text in answers if '"audits": [{' in text]
    applied = [record.arguments[-1] for record in records if record.kind == "apply"]
    assert set(applied) == {target.plans["dev"]}
    for record in records:
        before_names = record.arguments[: record.arguments.index("--")]
        assert record.arguments[0] in VERBS
        assert not [word for word in before_names if word.startswith(FORBIDDEN)]
    assert digests(target.root) == before and context_history(target) == history


def context_history(target: Target) -> list[tuple[int, str]]:
    """What prod has shown so far."""
    with Session(target.settings) as session:
        return [(revision.revision, revision.plan_id) for revision in session.history()]


def test_a_plan_that_would_write_what_prod_shows_is_refused(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    toolbox = open_toolbox(target.settings, Access(), {})
    try:
        assert check_plan(toolbox.working.jobs.context(), target.plans["dev"], 20).environment == "dev"
        for name, why in (("prod", "cannot change prod"), ("restated", "no restatement")):
            with pytest.raises(Refused, match=why):
                check_plan(toolbox.working.jobs.context(), target.plans[name], 20)
        with pytest.raises(Refused, match=r"computes 1 tables?, and an agent may compute 0"):
            check_plan(toolbox.working.jobs.context(), target.plans["dev"], 0)
        with toolbox.working.jobs.context().reader.open_state() as work:
            table = work.store.environments.get("prod").snapshots["shop.daily"].table
        view = job_tools._find_plan_view(toolbox.working.jobs.context(), target.plans["dev"])
        shared = tuple(model.model_copy(update={"table": table}) for model in view.models)
        monkeypatch.setattr(job_tools, "_find_plan_view", lambda *_: view.model_copy(update={"models": shared}))
        with pytest.raises(Refused, match=r"computes tables that prod shows: `shop\.total`"):
            check_plan(toolbox.working.jobs.context(), target.plans["dev"], 20)
    finally:
        toolbox.close()


def test_every_parameter_of_every_tool_has_hostile_values(tmp_path: Path) -> None:
    write_shop(tmp_path)
    target = Target(tmp_path, SessionSettings(tmp_path), {"prod": "", "dev": ""})
    toolbox = open_toolbox(target.settings, Access(), {})
    values = hostile_values(target)

    async def parameters() -> set[str]:
        async with Client(make_server(toolbox)) as client:
            return {name for tool in (await client.list_tools()).tools for name in tool.input_schema["properties"]}

    assert anyio.run(parameters) <= values.keys()
    assert set(toolbox.tools) == set(TOOLS)
