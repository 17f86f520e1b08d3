"""What lives long holds no more after a thousand rounds than after a hundred: the service, the API, and sessions.

`MERGEPLAN_SOAK` is the number of rounds.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import mergeplan
from mergeplan.bot.github.events import sign_body
from tests.bot.conftest import SECRET
from tests.bot.service.test_connections import PATIENT, PUSH, Door
from tests.planner.api.test_floods import start
from tests.planner.shop import write_shop

pytestmark = pytest.mark.prove

ROUNDS = int(os.environ.get("MERGEPLAN_SOAK", "300"))
PLAIN = ssl.create_default_context()  # httpx makes one for each request, which takes longer than the request
SLACK = 2  # a pool may keep one more, and a thread may still be ending


def count_open(process: str = "self") -> Counter[str]:
    """How many sockets, databases and other files a process has open, and how many threads it has."""
    folder, counts = Path(f"/proc/{process}"), Counter[str]()
    for descriptor in (folder / "fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except FileNotFoundError:  # that of the folder itself
            continue
        kind = "database" if ".db" in target else target.partition(":")[0] if ":" in target else "file"
        counts[kind] += 1
    counts["thread"] = len(list((folder / "task").iterdir()))
    return counts


def assert_flat(rounds: int, go_round: Callable[[int], object], look: Callable[[], Counter[str]] = count_open) -> None:
    """Fail if anything grows after the first tenth of the rounds; log what was held then and at the end."""
    early = Counter[str]()
    for number in range(rounds):
        go_round(number)
        if number == rounds // 10:
            early = look()
    late = look()

    logging.getLogger(__name__).info("%d rounds: %s -> %s", rounds, sorted(early.items()), sorted(late.items()))
    assert {kind: count for kind, count in late.items() if count > early[kind] + SLACK} == {}, (early, late)


def test_the_service_holds_no_more_after_many_webhooks(tmp_path: Path) -> None:
    door, signature = Door(tmp_path, PATIENT), sign_body(SECRET, PUSH)

    def go_round(number: int) -> None:
        fields = {"X-GitHub-Event": "push", "X-GitHub-Delivery": f"soak-{number}", "X-Hub-Signature-256": signature}
        assert (
            httpx.post(f"{door.url}/webhook", content=PUSH, headers=fields, timeout=60, verify=PLAIN).status_code == 202
        )
        for path in ("healthz", "metrics"):
            assert httpx.get(f"{door.url}/{path}", timeout=60, verify=PLAIN).status_code == 200

    try:
        assert_flat(ROUNDS, go_round)
    finally:
        door.stop()


def test_the_api_holds_no_more_after_many_requests(tmp_path: Path) -> None:
    with start(tmp_path, "pass") as server:

        def go_round(number: int) -> None:
            if number % 20 == 0:  # another catalog
                (tmp_path / "more").write_text(f"MODEL (name shop.more, kind VIEW);\nSELECT {number} AS n")
                (tmp_path / "more").replace(tmp_path / "models/more.sql")
            for path in ("meta", "models", "models/shop.daily", "lineage/shop.daily", "environments", "jobs"):
                answer = httpx.get(f"{server.url}/api/v1/{path}", timeout=60, verify=PLAIN)
                assert answer.status_code == 200, answer.text

        assert_flat(ROUNDS, go_round, lambda: count_open(str(server.process.pid)))


def test_a_process_holds_no_more_after_many_sessions(tmp_path: Path) -> None:
    write_shop(tmp_path)

    def go_round(_: int) -> None:
        with mergeplan.open(tmp_path) as session:
            assert not session.environments()

    assert_flat(ROUNDS, go_round)
