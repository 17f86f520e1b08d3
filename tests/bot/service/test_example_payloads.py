"""GitHub's own example payloads, of every event that it can send: none of them makes the service fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mergeplan.bot.github.events import sign_body
from tests.bot.conftest import COLUMN, SECRET, SHOP, Bench
from tests.npm import fetch_package

pytestmark = pytest.mark.prove
PACKAGE = "@octokit/webhooks-examples"


@pytest.fixture(name="examples")
def _examples(tmp_path: Path) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Each example with the name of its event."""
    index = json.loads((fetch_package(PACKAGE, tmp_path) / "api.github.com" / "index.json").read_text())
    yield [(event["name"], example) for event in index for example in event["examples"]]


def ours(value: Any, number: int) -> Any:
    """The example as if it were about the shop, its owner and a pull request that is there."""
    if isinstance(value, list):
        return [ours(element, number) for element in value]
    if not isinstance(value, dict):
        return value
    made = {key: ours(element, number) for key, element in value.items()}
    if "full_name" in made:
        made |= {"full_name": SHOP, "name": "shop"}
    if isinstance(made.get("number"), int):
        made["number"] = number
    return made | (
        {"login": "ann"} if isinstance(made.get("login"), str) and made.get("type") == "Organization" else {}
    )


def test_every_example_is_answered_and_none_makes_a_job_fail(
    bench: Bench, examples: list[tuple[str, dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 28: as it is, and as if it were about a repository of ours; afterwards the bot works as before."""
    number = bench.open(COLUMN)
    bench.idle()
    answers = dict[str, int]()
    with httpx.Client() as client:
        for index, (event, example) in enumerate((e, x) for e, y in examples for x in (y, ours(y, number))):
            body = json.dumps(example).encode()
            headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": f"example-{index}"}
            signed = {**headers, "X-Hub-Signature-256": sign_body(SECRET, body), "Content-Type": "application/json"}
            answer = client.post(f"{bench.url}/webhook", content=body, headers=signed, timeout=30)
            answers[f"{event} {example.get('action', '')} {index}"] = answer.status_code
    bench.idle()
    bench.say(number, "/plan")

    assert len(answers) > 400
    assert {name: code for name, code in answers.items() if code >= 500} == {}
    assert bench.conclusions(bench.head(number))["plan"] == "success"
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    assert "job_failed" not in told.out
