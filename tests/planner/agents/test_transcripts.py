"""Transcripts of sessions in which an agent plans and applies, over stdio and HTTP, in both forms of the protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client

from mergeplan.planner.agents.job_tools import TO_PROD
from mergeplan.planner.api.access import Scope
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.agents.sessions import (
    TOKENS,
    Person,
    call_each,
    cancel_jobs,
    converse,
    converse_http,
    data,
    finish,
    message,
    serve_http,
)
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import write_shop

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKENS[Scope.READ]}"}


async def plan_and_apply(client: Client) -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
    """The plan of `dev`, the answer to applying it, and the jobs after that."""
    planned = await finish(client, await client.call_tool("make_plan", {"environment": "dev"}))
    applied = await client.call_tool("apply_plan", {"plan_id": planned["plan_id"], "note": "try it"})
    await cancel_jobs(client)
    return planned, applied, data(await client.call_tool("jobs", {}))["jobs"]


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.prove)])
def test_a_person_is_asked_before_a_plan_is_applied(tmp_path: Path, mode: str) -> None:
    write_shop(tmp_path)
    person = Person(approves=True)
    planned, applied, jobs = converse(tmp_path, plan_and_apply, person=person, mode=mode)

    assert (planned["status"], planned["plan"]["environment"]) == ("done", "dev")
    question = f"Apply the plan `{planned['plan_id']}` to the environment `dev`? It computes 4 tables."
    assert person.questions == [question]
    assert (data(applied)["kind"], data(applied)["plan_id"]) == ("apply", planned["plan_id"])
    assert [(job["kind"], job["who"]) for job in jobs] == [("apply", "agent:local"), ("plan", "agent:local")]


def test_without_an_approval_nothing_is_applied(tmp_path: Path) -> None:
    write_shop(tmp_path)
    _, declined, jobs = converse(tmp_path, plan_and_apply, person=Person(approves=False))
    _, unasked, more = converse(tmp_path, plan_and_apply)
    log = [json.loads(line) for line in (tmp_path / ".mergeplan/agents/audit.jsonl").read_text().splitlines()]

    assert "did not approve" in message(declined) and "cannot ask" in message(unasked)
    assert {job["kind"] for job in (*jobs, *more)} == {"plan"}
    refused = [row for row in log if row["tool"] == "apply_plan"]
    assert [row["decision"] for row in refused] == ["declined", "unasked"]
    assert all(row["outcome"].startswith("refused: ") for row in refused)


def test_a_plan_of_prod_is_refused_with_the_way_to_go(tmp_path: Path) -> None:
    write_shop(tmp_path)
    person = Person(approves=True)
    with Session(SessionSettings(tmp_path, open_engine=refuse_engine)) as session:
        plan_id = session.plan().id
    (answer,) = converse(tmp_path, call_each((("apply_plan", {"plan_id": plan_id}),)), person=person)

    assert TO_PROD in message(answer) and "open a pull request" in message(answer)
    assert person.questions == []


def test_a_token_allows_what_its_scope_includes(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve_http(tmp_path) as address:
        read = converse_http(
            address, Scope.READ, call_each((("environments", {}), ("make_plan", {"environment": "dev"})))
        )
        _, planner, _ = converse_http(address, Scope.PLAN, plan_and_apply, Person(approves=True))
        _, applier, jobs = converse_http(address, Scope.APPLY, plan_and_apply, Person(approves=True), "legacy")

    assert data(read[0]) == {"environments": []}
    assert "needs a token of the scope `plan`" in message(read[1])
    assert "needs a token of the scope `apply`" in message(planner)
    assert data(applier)["who"] == "agent:token:apply"
    assert {job["who"] for job in jobs} == {"agent:token:apply", "agent:token:plan"}


def test_a_request_over_http_passes_the_guard_first(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve_http(tmp_path) as address, httpx2.Client() as web:
        answers = [
            web.post(address, json=REQUEST, headers={**HEADERS, "Authorization": "Bearer wrong"}),
            web.post(address, json=REQUEST, headers={name: HEADERS[name] for name in ("Accept",)}),
            web.post(address, json=REQUEST, headers={**HEADERS, "Origin": "https://elsewhere.example"}),
            web.post(address, content=b"x" * (3 << 20), headers=HEADERS),
        ]

    assert [answer.status_code for answer in answers] == [401, 401, 403, 413]


def test_a_foreign_host_is_refused_where_no_token_is_needed(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve_http(tmp_path, variables={"NO": "TOKENS"}) as address, httpx2.Client() as web:
        rebound = web.post(address, json=REQUEST, headers={**HEADERS, "Host": "evil.example"})

    assert rebound.status_code == 421
