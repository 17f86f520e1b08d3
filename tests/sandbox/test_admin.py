"""The sandbox's own JSON API: what Python can do, any program can."""

import httpx
import pytest

from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP


def test_a_person_acts_through_json(sandbox: Sandbox, number: int) -> None:
    body = {"repository": SHOP, "number": number, "body": "/plan", "author": "wim"}

    answer = httpx.post(f"{sandbox.url}/_sandbox/comment", json=body)

    assert answer.json() == {"result": sandbox.comments(SHOP, number)[0].id}


def test_faults_are_armed_listed_and_cleared(sandbox: Sandbox) -> None:
    armed = httpx.post(f"{sandbox.url}/_sandbox/faults/drop", json={"event": "push", "times": 2})
    listed = httpx.get(f"{sandbox.url}/_sandbox").json()["faults"]
    httpx.delete(f"{sandbox.url}/_sandbox/faults")

    assert armed.status_code == 200
    assert [(fault["kind"], fault["event"], fault["times"]) for fault in listed] == [("drop", "push", 2)]
    assert sandbox.faults.pending_faults() == []


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("stop", {}, 404),
        ("__init__", {}, 404),
        ("comment", {"nonsense": 1}, 422),
        ("edit_pull_request", {"repository": "ann/shop", "number": 1, "author": "ann", "titel": "x"}, 422),
        ("comment", {"repository": "ann/nothing", "number": 1, "body": "x", "author": "wim"}, 404),
        ("merge", {"repository": SHOP, "number": 1, "author": "rea"}, 403),
    ],
)
def test_what_cannot_be_done_is_said(sandbox: Sandbox, name: str, body: dict[str, object], status: int) -> None:
    answer = httpx.post(f"{sandbox.url}/_sandbox/{name}", json=body)

    assert answer.status_code == status
    assert answer.json()["message"]


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.2"}, {"Content-Type": "text/plain"}])
def test_another_site_cannot_act(sandbox: Sandbox, headers: dict[str, str]) -> None:
    usual = {"Content-Type": "application/json"}

    answer = httpx.post(f"{sandbox.url}/_sandbox/add_user", content=b'{"login": "eve"}', headers=usual | headers)

    assert answer.status_code == 403
    assert "eve" not in sandbox.state.users
