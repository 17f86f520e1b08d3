"""Jobs: their journals, their turn, how they end, and what outlives the server."""

from __future__ import annotations

import os
import stat
import time
from itertools import pairwise
from pathlib import Path

import pytest

from mergeplan.planner.api.jobs.child import Launch
from mergeplan.planner.api.jobs.store import JobLimits
from mergeplan.planner.cli.main import VERBS, Verbs
from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.api.serving import fake_job, serve, wait_for, wait_until
from tests.planner.shop import write_shop

DONE = '{"event":"result","version":1,"ok":true}'
FAILED = '{"event":"result","version":1,"ok":false}'
SLEEP = "time.sleep(60)"


def error(kind: str, code: int = 1) -> str:
    return f'{{"event":"error","message":"It is so.","kind":"{kind}","exit_code":{code}}}'


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    write_shop(tmp_path)


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (fake_job(DONE), "done"),
        (fake_job(FAILED, after="sys.exit(1)"), "done"),  # unit tests that failed: the job itself did not
        (fake_job(error("RequestError"), FAILED, after="sys.exit(1)"), "failed"),
        (fake_job(error("PlanMoved", 4), FAILED, after="sys.exit(4)"), "refused"),
        (fake_job(error("Cancelled", 130), FAILED, after="sys.exit(130)"), "cancelled"),
        (fake_job("no JSON", "{no JSON either"), "interrupted"),
        (fake_job(after="import os; os.kill(os.getpid(), signal.SIGKILL)"), "interrupted"),
    ],
)
def test_how_a_job_ended_stands_in_its_journal(tmp_path: Path, program: tuple[str, ...], status: str) -> None:
    with serve(tmp_path, command=program) as (client, _):
        job = wait_for(client, client.post("/api/v1/tests", json={}).headers["location"])

    assert job["status"] == status
    kinds = [kind for kind in ("RequestError", "PlanMoved", "Cancelled") if kind in str(program)]
    assert [one["kind"] for one in job["errors"]] == kinds


def test_jobs_have_their_turn_in_order(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(after="time.sleep(2)")) as (client, _):
        client.get("/api/v1/meta")  # the catalog is read
        places = [client.post("/api/v1/tests", json={}).headers["location"] for _ in range(3)]
        wait_until(client, places[0], "running")
        meta = client.get("/api/v1/meta").json()
        jobs = [wait_for(client, place) for place in places]

    assert (meta["running"], meta["waiting"]) == (1, 2)
    assert all(before["ended_at"] <= after["started_at"] for before, after in pairwise(jobs))


def test_when_too_many_wait_the_next_is_told_so(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(after=SLEEP), limits=JobLimits(waiting=1)) as (client, context):
        first = client.post("/api/v1/tests", json={})
        wait_until(client, first.headers["location"], "running")
        statuses = [client.post("/api/v1/tests", json={}).status_code for _ in range(3)]
        for job in context.jobs.list():
            context.jobs.cancel(job.id)
        wait_for(client, first.headers["location"])

    assert statuses == [202, 429, 429]


def test_the_oldest_jobs_are_forgotten_with_their_files(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(DONE), limits=JobLimits(kept=2)) as (client, context):
        places = [client.post("/api/v1/tests", json={}).headers["location"] for _ in range(4)]
        wait_for(client, places[-1])
        folders = [path.name for path in context.jobs.folder.iterdir() if path.is_dir()]
        gone = client.get(places[0])

    assert sorted(folders) == sorted(place.rpartition("/")[2] for place in places[2:])
    assert gone.status_code == 404


def test_a_job_that_is_cancelled_is_asked_to_end(tmp_path: Path) -> None:
    last = f"print({error('Cancelled', 130)!r}), print({FAILED!r}), sys.exit(130)"
    after = f"signal.signal(signal.SIGTERM, lambda *_: ({last}))\nprint('ready', flush=True)\n{SLEEP}"
    with serve(tmp_path, command=fake_job(after=after)) as (client, _):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        while client.get(place).json()["events"] == 0:
            time.sleep(0.05)
        request = client.post(f"{place}/cancel")
        job = wait_for(client, place)
        again = client.post(f"{place}/cancel")

    assert (request.status_code, job["status"], job["exit_code"], again.status_code) == (202, "cancelled", 130, 409)


def test_a_job_that_waits_is_cancelled_without_a_process(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(after=SLEEP)) as (client, context):
        first, second = (client.post("/api/v1/tests", json={}).headers["location"] for _ in range(2))
        wait_until(client, first, "running")
        cancelled = client.post(f"{second}/cancel").json()
        context.jobs.cancel(first.rpartition("/")[2])
        wait_for(client, first)

    assert (cancelled["status"], cancelled["started_at"]) == ("cancelled", None)


def test_a_job_goes_on_without_its_server_and_the_next_one_finds_it(tmp_path: Path) -> None:
    program = fake_job('{"event":"stage","name":"tests"}', after=f"time.sleep(1.5)\nprint({DONE!r})")
    with serve(tmp_path, command=program) as (client, _):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        waiting = client.post("/api/v1/tests", json={}).headers["location"]
        wait_until(client, place, "running")
    with serve(tmp_path, command=fake_job(DONE)) as (client, _):
        taken_over = client.get(place).json()
        ended, next_one = wait_for(client, place), wait_for(client, waiting)

    assert taken_over["status"] == "running"
    assert (ended["status"], ended["events"], ended["exit_code"]) == ("done", 2, None)
    assert next_one["status"] == "done"


def test_a_job_whose_process_was_not_yet_written_down_is_not_begun_twice(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(after=f"time.sleep(2)\nprint({DONE!r})")) as (client, context):
        place = client.post("/api/v1/tests", json={}).headers["location"]
        job_id = wait_until(client, place, "running")["id"]
        record = context.jobs.get(job_id)
        assert record
        context.jobs.close()
        context.jobs.journal(job_id).write(record.model_copy(update={"pid": 0, "birth": ""}))
    with serve(tmp_path, command=fake_job(FAILED)) as (client, context):
        taken_over = client.get(place).json()["status"]
        ended = wait_for(client, place)

    assert (taken_over, ended["status"], ended["result"]["ok"], ended["events"]) == ("running", "done", True, 1)


def test_one_project_has_one_server(tmp_path: Path) -> None:
    with serve(tmp_path), pytest.raises(LeaseHeld, match="Another `mergeplan ui`"), serve(tmp_path):
        pass


def test_what_a_job_writes_is_for_its_user_alone(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job(DONE)) as (client, context):
        job = wait_for(client, client.post("/api/v1/tests", json={}).headers["location"])
        folder = context.jobs.journal(job["id"]).folder
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}

    assert modes.pop(job["id"]) == 0o700
    assert set(modes.values()) == {0o600}


def test_a_job_sees_no_token_and_no_secret_in_its_environment(tmp_path: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "MERGEPLAN_HOME": "/home",
        "MERGEPLAN_GITHUB_TOKEN": "t1",
        "MERGEPLAN_API_READ_TOKEN": "t2",
        "AWS_SECRET_ACCESS_KEY": "t3",
        "WAREHOUSE": "named",
    }
    settings = SessionSettings(tmp_path, state_url="postgresql://user:pass@host/db")
    launch = Launch(settings, environ, ("WAREHOUSE",), fake_job(after="import os; print(os.environ, sys.stdin.read())"))
    launch.start((), tmp_path / "lines", tmp_path / "log").wait(10)
    text = (tmp_path / "lines").read_text()

    assert set(launch.environment()) == {
        "PATH", "MERGEPLAN_HOME", "WAREHOUSE", "MERGEPLAN_STATE_URL",
        "PYTHONUNBUFFERED", "PYTHONNOUSERSITE", "PYTHONSAFEPATH",
    }  # fmt: skip
    assert launch.environment()["MERGEPLAN_STATE_URL"] == "-"
    assert text.rstrip().endswith("postgresql://user:pass@host/db")  # on standard input


def test_every_verb_takes_the_arguments_of_its_job(tmp_path: Path) -> None:
    """`mergeplan` itself reads them: what it calls wrong usage is a defect of ours."""
    bodies = {
        "plans": {
            "environment": "dev", "start": "2026-01-01", "end": "2026-01-02", "execution_time": "2026-01-05",
            "categories": {"shop.daily": "breaking"}, "forward_only": True, "effective_from": "2026-01-01",
            "enable_preview": False, "allow_destructive": ["a"], "allow_additive": ["b"], "select": ["shop.*"],
            "backfill": ["shop.daily"], "min_intervals": 2, "no_gaps": True, "include_unmodified": True,
            "ignore_cron": True, "skip_backfill": True, "empty_backfill": True, "refresh": True, "skip_tests": True,
            "rerun_tests": True, "skip_linter": True, "strict": True,
        },
        "restatements": {"models": ["-x", "--help"], "start": "2026-01-01", "end": "2026-01-02"},
        "tests": {"names": ["--version", "-x"], "patterns": ["-k", "--help"]},
        "table-diffs": {"first": "-a", "second": "--b", "model": "-m", "on": ["-x"], "skip": ["-y"], "samples": 3,
                        "where": "--x"},
    }  # fmt: skip
    with serve(tmp_path, command=fake_job()) as (client, context):
        for path, body in bodies.items():
            assert client.post(f"/api/v1/{path}", json=body).status_code == 202, path
        records = context.jobs.list()
        wait_for(client, f"/api/v1/jobs/{records[0].id}")
    for record in records:
        verb, *rest = record.arguments
        context_of_verb = Verbs(VERBS).get_command(None, verb)  # type: ignore[arg-type]
        assert context_of_verb
        parsed = context_of_verb.make_context(verb, list(rest), resilient_parsing=False)
        assert parsed.params["output"] == "json", verb
