"""What SQLMesh's server answers, row by row: the endpoint here, and what its answer must hold.

Left out are those that make no sense over HTTP here: any SQL (`fetchdf`), folders, and one event stream for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.planner.api.serving import fake_job, serve
from tests.planner.shop import write_shop

DAILY = "models/daily.sql"
ROWS = [
    ("GET /meta", "GET", "meta", None, 200, '"version"'),
    ("GET /modules", "GET", "modules", None, 200, '"catalog","files","plans"'),
    ("GET /files", "GET", "files", None, 200, DAILY),
    ("GET /files/{path}", "GET", f"files/{DAILY}", None, 200, '"content"'),
    ("GET /files/{path}, missing", "GET", "files/models/none.sql", None, 404, "There is no file"),
    ("POST /files/{path}", "PUT", "files/models/new.sql", {"content": "SELECT 1"}, 200, '"digest"'),
    ("DELETE /files/{path}, missing", "DELETE", f"files/models/none.sql?expected={'0' * 64}", None, 404, "There is no"),
    ("DELETE /files/{path}, a folder", "DELETE", f"files/models?expected={'0' * 64}", None, 404, "There is no"),
    ("GET /models", "GET", "models", None, 200, '"shop.daily"'),
    ("GET /models/{name}", "GET", "models/shop.daily", None, 200, '"query":"SELECT'),
    ("GET /models/{name}, missing", "GET", "models/shop.none", None, 404, "There is no model"),
    ("GET /lineage/{model}", "GET", "lineage/shop.total", None, 200, '"parents":["shop.daily"]'),
    ("GET /lineage/{model}, missing", "GET", "lineage/shop.none", None, 404, "There is no model"),
    ("GET /lineage/{model}/{column}", "GET", "lineage/shop.total/total", None, 200, '"how":"made_from"'),
    ("GET /lineage/{model}/{column}, missing", "GET", "lineage/shop.total/none", None, 404, "has no column"),
    ("GET /lineage/…?models_only", "GET", "lineage/shop.items?direction=downstream", None, 200, "shop.shown"),
    ("GET /environments", "GET", "environments", None, 200, '"environments":[]'),
    ("DELETE /environments/{name}, missing", "DELETE", "environments/dev", None, 404, "There is no environment"),
    ("DELETE /environments/prod", "DELETE", "environments/prod", None, 422, "prod"),
    ("POST /plan", "POST", "plans", {"environment": "dev"}, 202, '"kind":"plan"'),
    ("POST /plan, dates", "POST", "plans", {"start": "2026-01-01", "end": "2026-01-02"}, 202, '"start":"2026-01-01"'),
    ("POST /plan, categories", "POST", "plans", {"categories": {"shop.daily": "breaking"}}, 202, "breaking"),
    ("POST /plan, restate_models", "POST", "restatements", {"models": ["shop.daily"]}, 202, '"kind":"restatement"'),
    ("POST /plan/cancel, no plan", "POST", "plans/20260101000000-00000000/cancel", None, 404, "There is no plan"),
    ("POST /commands/apply, no plan", "POST", "plans/20260101000000-00000000/apply", {}, 404, "There is no plan"),
    ("POST /commands/evaluate", "POST", "evaluations", {"model": "shop.total"}, 202, '"kind":"evaluation"'),
    ("POST /commands/evaluate, missing", "POST", "evaluations", {"model": "shop.none"}, 404, "There is no model"),
    ("POST /commands/render", "GET", "render/shop.total", None, 200, "SUM(price)"),
    ("POST /commands/render, missing", "GET", "render/shop.none", None, 404, "There is no model"),
    ("POST /commands/render, dialect", "GET", "render/shop.total?dialect=duckdb", None, 200, "SUM(price)"),
    ("GET /commands/test", "POST", "tests", {"names": ["test_x"]}, 202, '"kind":"test"'),
    ("GET /table_diff", "POST", "table-diffs", {"first": "prod", "second": "dev"}, 202, '"kind":"table_diff"'),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root: Path = tmp_path_factory.mktemp("shop")
    write_shop(root)
    with serve(root, edit=True, command=fake_job('{"event":"result","version":1,"ok":true}')) as (client, _):
        yield client


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_answer_of_sqlmeshs_server_has_one_here(
    client: TestClient, row: tuple[str, str, str, dict[str, object] | None, int, str]
) -> None:
    _, method, path, body, status, text = row
    answer = client.request(method, f"/api/v1/{path}", json=body)

    assert (answer.status_code, text in answer.text) == (status, True), answer.text[:500]
