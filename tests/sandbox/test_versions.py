"""The versions of the REST API, by the header of a call."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mergeplan_sandbox.api.versions import DROPPED, OLDEST
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP
from .test_shapes import ANSWERS

NEW = {"X-GitHub-Api-Version": "2026-03-10"}


def test_the_new_version_has_no_field_that_github_dropped(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    """Compare with the published types of that version, in nested repositories and users too."""
    names = {"number": number, "sha": sandbox.pull_request(SHOP, number).head_sha, "comment": 0}
    for path, model, key in ANSWERS:
        answer = api.get(path.format(**names), headers=NEW)
        if answer.status_code != 404:
            shape = answer.json() if key in (None, "list") else answer.json()[key]
            for item in shape if isinstance(shape, list) else [shape]:
                model.model_validate(item)
                assert not DROPPED["2026-03-10"] & names_in(item), path


def names_in(shape: Any) -> set[str]:
    """Every name in a JSON value."""
    if isinstance(shape, list):
        return set().union(*map(names_in, shape))
    return set(shape).union(*map(names_in, shape.values())) if isinstance(shape, dict) else set()


def test_a_call_without_a_version_and_a_webhook_keep_the_fields(
    sandbox: Sandbox, api: httpx.Client, number: int
) -> None:
    answer = api.get(f"/pulls/{number}")
    sandbox.wait_idle()
    opened = next(item for item in sandbox.deliveries if item.event == "pull_request")

    assert answer.headers["x-github-api-version-selected"] == OLDEST
    assert api.get(f"/pulls/{number}", headers=NEW).headers["x-github-api-version-selected"] == "2026-03-10"
    assert {"merge_commit_sha", "assignee"} <= answer.json().keys() & opened.payload["pull_request"].keys()


@pytest.mark.parametrize("version", ["2021-01-01", "latest"])
def test_an_unknown_version_is_refused(api: httpx.Client, number: int, version: str) -> None:
    answer = api.get(f"/pulls/{number}", headers={"X-GitHub-Api-Version": version})

    assert (answer.status_code, version in answer.json()["message"]) == (400, True)
