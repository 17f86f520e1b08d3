"""The events of a job: each line is one, an id goes on where a reader was, and masks and scopes hold."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from mergeplan.planner.api import events
from mergeplan.planner.api.access import Access, Scope
from tests.planner.api.serving import fake_job, serve, wait_for
from tests.planner.shop import write_shop

LINES = [
    '{"event":"stage","name":"tests","total":1,"spark_ui":""}',
    "a library prints this",
    '{"model":"shop.daily","name":"not_null","ok":true,"event":"audit"}',
    '{"event":"result","version":1,"ok":true}',
]
TOKENS = {Scope.READ: "r" * 32, Scope.APPLY: "a" * 32}


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    write_shop(tmp_path)


def parse(text: str) -> list[tuple[int, str]]:
    """The ids and names of a stream's events."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("id:")]
    return [(int(block[0].removeprefix("id: ")), block[1].removeprefix("event: ")) for block in blocks]


def test_each_line_is_an_event_and_its_number_the_id(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(*LINES)) as (client, _):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        stream = client.get(f"{place}/events")
        again = client.get(f"{place}/events", headers={"Last-Event-ID": "1"})
        over = client.get(f"{place}/events", headers={"Last-Event-ID": "4"})
        strange = client.get(f"{place}/events", headers={"Last-Event-ID": "minus one"})

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert parse(stream.text) == [(1, "stage"), (3, "audit"), (4, "result")]
    assert parse(again.text) == [(3, "audit"), (4, "result")]
    assert (over.status_code, over.text) == (204, "")
    assert parse(strange.text) == parse(stream.text)


def test_a_silent_job_is_pinged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PING", 0.5)
    with serve(tmp_path, command=fake_job(LINES[0], after="time.sleep(2)")) as (client, _):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        text = client.get(f"{place}/events").text

    assert text.count(": ping\n\n") >= 2


def test_a_line_is_whole_before_it_is_an_event(tmp_path: Path) -> None:
    half = f"sys.stdout.write({LINES[3][:10]!r}); sys.stdout.flush(); time.sleep(1); print({LINES[3][10:]!r})"
    with serve(tmp_path, command=fake_job(after=half)) as (client, _):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        assert parse(client.get(f"{place}/events").text) == [(1, "result")]


def test_many_readers_wait_and_others_are_answered(tmp_path: Path) -> None:
    """An open stream takes no thread: more of them than there are threads leave the others their answers."""
    with serve(tmp_path, command=fake_job(LINES[0], after="time.sleep(4)")) as (client, context):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        job_id = place.rpartition("/")[2]

        async def read_all() -> int:
            ends: list[bytes] = []

            async def read() -> None:
                ends.append(b"".join([event async for event in events.stream_events(context.jobs, job_id, 0)]))

            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(read)
            return sum(b"event: stage" in end for end in ends)

        assert anyio.run(read_all) == 100


def test_rows_of_an_evaluation_are_for_those_who_may_fetch_them(tmp_path: Path) -> None:
    with serve(tmp_path, Access(tokens=TOKENS), command=fake_job(*LINES)) as (client, _):
        apply, read = ({"Authorization": f"Bearer {TOKENS[scope]}"} for scope in (Scope.APPLY, Scope.READ))
        place = client.post("/api/v1/evaluations", json={"model": "shop.total"}, headers=apply).headers["location"]
        refused = [client.get(address, headers=read).status_code for address in (place, f"{place}/events")]
        client.headers.update(apply)
        job = wait_for(client, place)

    assert (refused, job["status"], job["request"]) == ([403, 403], "done", {"model": "shop.total"})


def test_results_of_checks_are_kept_with_their_jobs(tmp_path: Path) -> None:
    failed = '{"model":"shop.daily","name":"not_null","ok":false,"count":3,"event":"audit"}'
    test = '{"event":"test","name":"t","ok":true}'
    with serve(tmp_path, command=fake_job(test, *LINES)) as (client, _):
        wait_for(client, client.post("/api/v1/tests", json={}).headers["location"])
    with serve(tmp_path, command=fake_job(failed, LINES[3])) as (client, _):
        wait_for(client, client.post("/api/v1/tests", json={}).headers["location"])
        history = client.get("/api/v1/audits/history?model=shop.daily").json()
        bad = client.get("/api/v1/audits/history?failed=true").json()
        audits = client.get("/api/v1/audits").json()["checks"]
        tests = client.get("/api/v1/tests/history").json()["results"]

    assert [(row["name"], row["ok"]) for row in history["results"]] == [("not_null", False), ("not_null", True)]
    assert (bad["total"], audits[0]["last"]["count"], [row["name"] for row in tests]) == (1, 3, ["t"])


def test_a_limit_of_an_evaluation_counts(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(LINES[3])) as (client, context):
        statuses = [
            client.post("/api/v1/evaluations", json={"model": model, "limit": limit}).status_code
            for model, limit in (("shop.total", 1000), ("shop.total", 1001), ("shop.total", 0), ("shop.items", 5))
        ]
        arguments = context.jobs.list()[0].arguments

    assert statuses == [202, 422, 422, 422]
    assert arguments[:2] == ("fetchdf", "--limit=1000") and arguments[-2] == "--"
