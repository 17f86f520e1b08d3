"""GitHub's limits, and its refusals in its own shape."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP, a_shop


@pytest.fixture(name="sandbox", scope="module")
def _sandbox() -> Iterator[Sandbox]:
    """One for all, for what is refused leaves no trace."""
    with a_shop() as sandbox:
        yield sandbox


@pytest.fixture(name="number")
def _number(sandbox: Sandbox) -> int:
    return sandbox.open_issue(SHOP, "A question", author="rea")


def note(**changes: Any) -> dict[str, Any]:
    usual = {"path": "a.sql", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "Look"}
    return usual | changes


def button(**changes: str) -> dict[str, str]:
    return {"label": "Apply", "description": "Apply it", "identifier": "apply"} | changes


def output(**changes: Any) -> dict[str, Any]:
    return {"output": {"title": "T", "summary": "S"} | changes}


TOO_MUCH: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": "n" * 256}),
    ("summary", output(summary="s" * 65_536)),
    ("text", output(text="s" * 65_536)),
    ("summary", {"output": {"title": "T"}}),
    ("annotations", output(annotations=[note()] * 51)),
    ("message", output(annotations=[note(message="é" * 32_769)])),
    ("start_column", output(annotations=[note(end_line=2, start_column=1)])),
    ("start_line", output(annotations=[note(start_line=3, end_line=2)])),
    ("annotation_level", output(annotations=[note(annotation_level="terrible")])),
    ("actions", {"actions": [button()] * 4}),
    ("label", {"actions": [button(label="l" * 21)]}),
    ("description", {"actions": [button(description="d" * 41)]}),
    ("identifier", {"actions": [button(identifier="i" * 21)]}),
    ("conclusion", {"conclusion": "splendid"}),
    ("conclusion", {"status": "completed"}),
    ("status", {"status": "tired"}),
]


@pytest.mark.parametrize(("field", "body"), TOO_MUCH)
def test_a_check_beyond_a_limit_is_refused(
    sandbox: Sandbox, api: httpx.Client, field: str, body: dict[str, Any]
) -> None:
    sha = sandbox.head(SHOP, "more")

    answer = api.post("/check-runs", json={"name": "plan", "head_sha": sha} | body)

    assert answer.status_code == 422
    assert answer.json()["message"] == "Validation Failed"
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert sandbox.checks(SHOP, sha) == {}


def test_a_check_at_the_limits_is_taken(sandbox: Sandbox, api: httpx.Client) -> None:
    column = note(start_column=1, end_column=5)
    most = output(summary="s" * 65_535, text="t" * 65_535, annotations=[column] * 50)
    actions = [button(label="l" * 20, description="d" * 40, identifier="i" * 20)] * 3

    answer = api.post("/check-runs", json={"name": "n", "head_sha": sandbox.head(SHOP), "actions": actions} | most)

    assert answer.status_code == 201


@pytest.mark.parametrize(("length", "status"), [(65_536, 201), (65_537, 422), (0, 422)])
def test_a_comment_has_one_to_65536_characters(api: httpx.Client, number: int, length: int, status: int) -> None:
    answer = api.post(f"/issues/{number}/comments", json={"body": "é" * length})

    assert answer.status_code == status


def test_a_title_has_at_most_256_characters(sandbox: Sandbox) -> None:
    with pytest.raises(ApiError) as refused:
        sandbox.open_issue(SHOP, "t" * 257, author="rea")

    assert refused.value.errors is not None
    assert (refused.value.status, refused.value.errors[0]["field"]) == (422, "title")


def test_what_is_not_json_is_refused(api: httpx.Client, number: int) -> None:
    answer = api.post(f"/issues/{number}/comments", content=b"{")

    assert (answer.status_code, answer.json()["message"]) == (400, "Problems parsing JSON")


@pytest.mark.parametrize("path", ["/pulls/99", "/issues/comments/99", "/check-runs/99", "/nowhere", "/pulls/x"])
def test_what_is_not_there_is_not_found(api: httpx.Client, path: str) -> None:
    answer = api.get(path)

    assert answer.status_code == 404
    assert answer.json() | {"documentation_url": ""} == {
        "message": "Not Found",
        "documentation_url": "",
        "status": "404",
    }
