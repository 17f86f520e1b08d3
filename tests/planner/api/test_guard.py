"""What every request passes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.api.access import Access, Mode, Scope
from mergeplan.planner.api.guard import LARGEST
from tests.planner.api.serving import fake_job, serve
from tests.planner.shop import write_shop

TOKENS = {Scope.READ: "r" * 32, Scope.PLAN: "p" * 32, Scope.APPLY: "a" * 32}
WRITES = (
    "plans",
    "runs",
    "audits",
    "tests",
    "evaluations",
    "table-diffs",
    "data-diffs",
    "physical-plans",
    "restatements",
)
FORGED = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:8081"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


def bearer(scope: Scope) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[scope]}"}


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    write_shop(tmp_path)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8080", "", "192.168.0.7:8080"])
def test_without_tokens_a_name_that_leads_here_by_dns_is_refused(tmp_path: Path, host: str) -> None:
    with serve(tmp_path) as (client, _):
        answer = client.get("/api/v1/meta", headers={"Host": host})

    assert (answer.status_code, answer.headers["content-type"]) == (421, "application/problem+json")


@pytest.mark.parametrize("headers", FORGED)
def test_a_page_of_another_origin_starts_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    with serve(tmp_path, command=fake_job()) as (client, context):
        statuses = {client.post(f"/api/v1/{path}", json={}, headers=headers).status_code for path in WRITES}

        assert statuses == {403}
        assert context.jobs.list() == ()


def test_a_page_of_this_origin_and_a_program_start_a_job(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job()) as (client, _):
        page = client.post(
            "/api/v1/tests", json={}, headers={"Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}
        )
        program = client.post("/api/v1/tests", json={})

    assert (page.status_code, program.status_code) == (202, 202)


def test_no_answer_lets_another_origin_read_it(tmp_path: Path) -> None:
    with serve(tmp_path) as (client, _):
        request = client.options(
            "/api/v1/meta", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
        )
        read = client.get("/api/v1/meta", headers={"Origin": "http://evil.example"})

    assert not [name for answer in (request, read) for name in answer.headers if name.startswith("access-control")]
    assert read.headers["cross-origin-resource-policy"] == "same-origin"


def test_without_a_token_nothing_but_health_answers(tmp_path: Path) -> None:
    with serve(tmp_path, Access(tokens=TOKENS)) as (client, _):
        schema = client.get("/api/v1/openapi.json", headers=bearer(Scope.READ)).json()
        refused = {
            client.request(method, path.replace("{", "").replace("}", ""), json={}).status_code
            for path, operations in schema["paths"].items()
            for method in operations
        }
        wrong = client.get("/api/v1/meta", headers={"Authorization": f"Bearer {'x' * 32}"})

        assert (refused, client.get("/healthz").status_code) == ({401}, 200)
        assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, "Bearer")


def test_a_token_allows_its_scope(tmp_path: Path) -> None:
    with serve(tmp_path, Access(tokens=TOKENS), command=fake_job()) as (client, _):

        def status(scope: Scope, method: str, path: str) -> int:
            return client.request(method, f"/api/v1/{path}", json={}, headers=bearer(scope)).status_code

        reads = [status(scope, "GET", "models") for scope in Scope]
        plans = [status(scope, "POST", "plans") for scope in Scope]
        rollbacks = [status(scope, "POST", "environments/prod/rollback") for scope in Scope]

    assert (reads, plans, rollbacks) == ([200] * 3, [403, 202, 202], [403, 403, 404])


def test_the_mode_holds_whoever_asks(tmp_path: Path) -> None:
    statuses = {}
    for mode in Mode:
        with serve(tmp_path, Access(mode, tokens=TOKENS), command=fake_job()) as (client, _):
            request = (("GET", "models"), ("GET", "jobs"), ("POST", "plans"), ("DELETE", "environments/dev"))
            statuses[str(mode)] = [
                client.request(method, f"/api/v1/{path}", json={}, headers=bearer(Scope.APPLY)).status_code
                for method, path in request
            ]

    assert statuses == {
        "catalog": [200, 403, 403, 403],
        "plan": [200, 200, 202, 403],
        "all": [200, 200, 202, 404],
    }


def test_a_large_body_is_not_read(tmp_path: Path) -> None:
    with serve(tmp_path, command=fake_job()) as (client, _):
        answer = client.post("/api/v1/tests", content=b"x" * (LARGEST + 1))

    assert answer.status_code == 413


def test_the_cookie_of_a_login_is_a_token(tmp_path: Path) -> None:
    with serve(tmp_path, Access(tokens=TOKENS)) as (client, _):
        client.cookies.set("mergeplan_token", TOKENS[Scope.READ])
        read = client.get("/api/v1/meta").json()
        planned = client.post("/api/v1/plans", json={})
        client.cookies.clear()
        page = client.get("/models", headers={"Accept": "text/html"}, follow_redirects=False)

    assert (read["scope"], planned.status_code) == ("read", 403)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fmodels")
