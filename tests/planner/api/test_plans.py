"""Plans as resources, by the real `mergeplan`; what needs no Spark runs without."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.api.jobs.job import JobKind
from mergeplan.planner.session.session import Session
from tests.planner.api.serving import fake_job, serve, wait_for
from tests.planner.session.conftest import shop
from tests.planner.shop import write_shop

__all__ = ["shop"]
PROD = {"environment": "prod"}
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT max(price) AS total FROM shop.daily"
SHOWN = "MODEL (name shop.shown, kind VIEW);\nSELECT total + 1 AS total FROM shop.total"


def test_a_plan_is_made_shown_and_refused_when_something_moved(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, _):
        made = client.post("/api/v1/plans", json=PROD)
        plan = wait_for(client, made.headers["location"])
        listed = client.get("/api/v1/plans?environment=prod").json()
        (tmp_path / "models/apart.sql").write_text("MODEL (name shop.apart, kind FULL);\nSELECT 8 AS seven")
        refused = client.post(f"{made.headers['location']}/apply", json={})

    assert (made.status_code, plan["status"], plan["plan"]["environment"]) == (202, "done", "prod")
    assert plan["plan_id"] == plan["plan"]["id"] == plan["result"]["plan"]["id"]
    assert [job["id"] for job in listed["jobs"]] == [plan["id"]]
    assert (refused.status_code, refused.json()["kind"]) == (409, "PlanMoved")
    assert "the project's files changed" in refused.json()["detail"]


def test_an_unmoved_plan_is_applied_by_its_id_and_once_at_a_time(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, context):
        place = client.post("/api/v1/plans", json=PROD).headers["location"]
        plan_id = wait_for(client, place)["plan_id"]
        context.jobs._launch = replace(context.jobs._launch, command=fake_job(after="time.sleep(60)"))
        applied = client.post(f"{place}/apply", json={"note": "-n --force"})
        again = client.post(f"{place}/apply", json={})
        job = context.jobs.get(applied.json()["id"])
        assert job
        context.jobs.cancel(job.id)
        wait_for(client, f"/api/v1/jobs/{job.id}")

    assert (applied.status_code, applied.json()["plan_id"], again.status_code) == (202, plan_id, 409)
    assert job.arguments[0] == "apply" and job.arguments[-2:] == ("--", plan_id)
    assert "--note=-n --force" in job.arguments


def test_twelve_applies_of_one_plan_at_once_take_one_place(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, context):
        place = client.post("/api/v1/plans", json=PROD).headers["location"]
        wait_for(client, place)
        context.jobs._launch = replace(context.jobs._launch, command=fake_job(after="time.sleep(60)"))
        with ThreadPoolExecutor(12) as pool:
            answers = [*pool.map(lambda _: client.post(f"{place}/apply", json={}), range(12))]
        jobs = context.jobs.list([JobKind.APPLY])
        for job in jobs:
            context.jobs.cancel(job.id)
            wait_for(client, f"/api/v1/jobs/{job.id}")

    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 11
    assert len(jobs) == 1


def test_what_is_no_plan_yet_is_not_applied(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path, command=fake_job('{"event":"result","version":1,"ok":false}')) as (client, _):
        place = client.post("/api/v1/plans", json=PROD).headers["location"]
        wait_for(client, place)
        test = client.post("/api/v1/tests", json={}).json()["id"]
        statuses = [
            client.post(f"{path}/apply", json={}).status_code
            for path in (place, f"/api/v1/plans/{test}", "/api/v1/plans/20260101000000-00000000", "/api/v1/plans/..%2f")
        ]

    assert statuses == [409, 404, 404, 404]


@pytest.mark.prove
def test_an_error_of_the_request_is_in_the_job_and_a_wrong_date_is_told_at_once(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, _):
        wrong = client.post("/api/v1/plans", json={"start": "someday"})
        key = client.post("/api/v1/plans", json={"enviroment": "dev"})
        name = client.post("/api/v1/plans", json={"environment": "pr-7"})
        job = wait_for(client, client.post("/api/v1/plans", json={"select": ["shop.typo"]}).headers["location"])

    assert (wrong.status_code, key.status_code, name.status_code) == (422, 422, 422)
    assert "`body.enviroment`" in key.json()["detail"] and "`pr-7` cannot name" in name.json()["detail"]
    assert (job["status"], job["errors"][0]["kind"]) == ("failed", "RequestError")


def test_environments_history_diff_and_rollback_are_read(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(apart="")
    session.plan().apply()
    (tmp_path / "models/total.sql").write_text(TOTAL)
    session.plan().apply()
    (tmp_path / "models/shown.sql").write_text(SHOWN)
    with serve(tmp_path, command=fake_job('{"event":"result","version":1,"ok":true}')) as (client, context):
        names = [row["name"] for row in client.get("/api/v1/environments").json()["environments"]]
        history = client.get("/api/v1/environments/prod/history?limit=1").json()
        diff = client.get("/api/v1/environments/prod/diff").json()
        rollback = client.get("/api/v1/environments/prod/rollback").json()
        model = client.get("/api/v1/models/shop.daily").json()
        states = {row["name"]: row["state"] for row in client.get("/api/v1/models").json()["models"]}
        explained = client.post("/api/v1/physical-plans", json={"environment": "prod"})
        unknown = client.post("/api/v1/physical-plans", json={"environment": "dev"})
        (job,) = context.jobs.list()

    assert (explained.status_code, unknown.status_code, job.kind) == (202, 404, "physical_plan")
    assert (job.arguments[0], job.arguments[-2:]) == ("physical_plan", ("--", "prod"))
    assert (names, history["total"], history["revisions"][0]["revision"]) == (["prod"], 2, 2)
    assert [change["name"] for change in diff["changes"]] == ["shop.shown"]
    assert (rollback["possible"], rollback["rollback"]["target"]["revision"]) == (True, 1)
    assert (model["versions"][0]["environment"], model["deployed"]["intervals"][0][0]) == ("prod", "2026-01-01")
    assert (states["shop.daily"], states["shop.shown"]) == ("current", "edited")
