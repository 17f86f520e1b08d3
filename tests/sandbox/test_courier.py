"""Webhooks arrive: signed, in order, logged, once."""

import hashlib
import hmac
import json

import pytest
from github import GithubIntegration

from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP, Receiver


@pytest.fixture(autouse=True)
def _listening(sandbox: Sandbox, receiver: Receiver) -> None:
    sandbox.install_app(SHOP, webhook_url=receiver.url, secret="changed")  # noqa: S106


def test_the_first_webhook_is_a_ping(sandbox: Sandbox, receiver: Receiver) -> None:
    sandbox.wait_idle()

    assert receiver.events[-1] == "ping"


def test_a_webhook_is_signed_over_its_bytes(sandbox: Sandbox, receiver: Receiver, number: int) -> None:
    sandbox.wait_idle()

    headers, body = receiver.heard[-1]
    expected = hmac.new(b"changed", body, hashlib.sha256).hexdigest()
    assert headers["X-Hub-Signature-256"] == f"sha256={expected}"
    assert headers["X-GitHub-Event"] == "pull_request"
    assert json.loads(body)["number"] == number


def test_webhooks_arrive_in_order(sandbox: Sandbox, receiver: Receiver, number: int) -> None:
    for index in range(10):
        sandbox.comment(SHOP, number, str(index), author="wim")
    sandbox.wait_idle()

    said = [json.loads(body)["comment"]["body"] for headers, body in receiver.heard if b'"comment"' in body]
    assert said == [str(index) for index in range(10)]


def test_a_redelivery_has_the_same_guid_and_body(sandbox: Sandbox, receiver: Receiver, number: int) -> None:
    sandbox.wait_idle()
    sandbox.redeliver(sandbox.deliveries[-1].id)
    sandbox.wait_idle()

    (first, body), (second, again) = receiver.heard[-2:]
    assert first["X-GitHub-Delivery"] == second["X-GitHub-Delivery"]
    assert body == again
    assert sandbox.deliveries[-1].redelivery


def test_the_app_redelivers_what_failed(
    sandbox: Sandbox, receiver: Receiver, number: int, app: GithubIntegration
) -> None:
    sandbox.wait_idle()
    receiver.status = 500
    sandbox.comment(SHOP, number, "/plan", author="wim")
    sandbox.wait_idle()
    failed = sandbox.deliveries[-1]
    assert (failed.status, failed.status_code) == ("Invalid HTTP Response: 500", 500)
    receiver.status = 202

    app.requester.requestJsonAndCheck("POST", f"/app/hook/deliveries/{failed.id}/attempts")
    sandbox.wait_idle()

    _, listed = app.requester.requestJsonAndCheck("GET", "/app/hook/deliveries")
    assert [(item["guid"], item["status"]) for item in listed[:2]] == [
        (failed.guid, "OK"),
        (failed.guid, failed.status),
    ]


def test_a_bot_that_is_away_costs_only_the_webhook(sandbox: Sandbox, number: int) -> None:
    sandbox.install_app(SHOP, webhook_url="http://127.0.0.1:9/webhook")
    sandbox.comment(SHOP, number, "/plan", author="wim")
    sandbox.wait_idle()

    assert sandbox.deliveries[-1].status == "failed to connect to host"
