"""What is read of the catalog: models, lineage, renderings, rules; and that it is read again when something moved."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mergeplan.planner.api import catalog_reader
from mergeplan.planner.api.catalog_reader import CatalogReader
from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.session.settings import SessionSettings, refuse_spark
from tests.planner.api.serving import serve
from tests.planner.shop import write_shop

NOW = datetime(2026, 1, 6, 5, tzinfo=UTC)
OWNED = "MODEL (name shop.apart, kind FULL, owner ann, tags (finance), description 'Seven apart');\nSELECT 7 AS seven"


@pytest.fixture
def reader(tmp_path: Path) -> CatalogReader:
    write_shop(tmp_path, apart=OWNED)
    return CatalogReader(SessionSettings(tmp_path, open_engine=refuse_spark), lambda: NOW)


def test_a_catalog_is_made_once_and_again_when_a_file_moved(reader: CatalogReader, tmp_path: Path) -> None:
    first = reader.read()
    reader.expire()
    same = reader.read()
    (tmp_path / "models/more.sql").write_text("MODEL (name shop.more, kind VIEW);\nSELECT 1 AS one")
    reader.expire()
    moved = reader.read()

    assert first.etag == same.etag != moved.etag
    assert "shop.more" in moved.models.keys() - first.models.keys()
    reader.close()


def test_a_catalog_is_made_again_when_the_state_moved(reader: CatalogReader) -> None:
    first = reader.read()
    with reader.open_state() as work:
        work.store.intervals.record("some.table", Interval(NOW - timedelta(days=1), NOW))
    reader.expire()

    assert reader.read() is not first
    reader.close()


def test_a_catalog_is_made_again_when_something_is_due(tmp_path: Path) -> None:
    write_shop(tmp_path)
    clock = [NOW]
    reader = CatalogReader(SessionSettings(tmp_path, open_engine=refuse_spark), lambda: clock[0])
    first = reader.read()
    clock[0] = NOW + timedelta(hours=2)

    assert reader.read() is not first
    reader.close()


def test_a_project_that_cannot_be_opened_is_an_error_until_it_is_mended(reader: CatalogReader, tmp_path: Path) -> None:
    good = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text("gateways: [")
    with pytest.raises(ProjectError, match=r"config\.yaml"):
        reader.read()
    (tmp_path / "config.yaml").write_text(good)
    reader.expire()

    assert len(reader.read().models) == 5
    with pytest.raises(RequestError, match="no environment `qa`"):
        reader.read("qa")
    reader.close()


def test_who_reads_while_a_catalog_is_made_gets_the_last_one(reader: CatalogReader) -> None:
    first = reader.read()
    reader.expire()
    answers: list[object] = []
    with reader._lock:  # it is being made
        thread = threading.Thread(target=lambda: answers.append(reader.read()))
        thread.start()
        thread.join(timeout=5)

    assert answers == [first]
    reader.close()


def test_a_catalog_that_takes_long_is_not_waited_for(
    reader: CatalogReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, made = reader.read(), reader._make
    monkeypatch.setattr(catalog_reader, "PATIENCE", 0.05)
    go_on = threading.Event()
    monkeypatch.setattr(reader, "_make", lambda name: made(name) if go_on.wait(30) else None)
    (tmp_path / "models/apart.sql").write_text(OWNED.replace("ann", "bob"))
    reader.expire()
    meanwhile = reader.read()
    go_on.set()
    with reader._lock:  # it is made
        pass

    assert meanwhile is first
    assert reader.read().models["shop.apart"].owner == "bob"
    reader.close()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=finance seven", ["shop.apart"]),
        ("q=PRICE", ["shop.items", "shop.daily"]),
        ("owner=ann", ["shop.apart"]),
        ("tag=finance&kind=full", ["shop.apart"]),
        ("select=shop.daily%2B", ["shop.daily", "shop.total", "shop.shown"]),
        ("kind=VIEW", ["shop.shown"]),
        ("limit=2&offset=1", ["shop.items", "shop.daily"]),
        ("owner=nobody", []),
    ],
)
def test_models_are_filtered_and_paged(tmp_path: Path, query: str, names: list[str]) -> None:
    write_shop(tmp_path, apart=OWNED)
    with serve(tmp_path) as (client, _):
        page = client.get(f"/api/v1/models?{query}").json()

    assert sorted(model["name"] for model in page["models"]) == sorted(names)


def test_who_has_the_list_already_is_told_so(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, _):
        first = client.get("/api/v1/models")
        again = client.get("/api/v1/models", headers={"If-None-Match": first.headers["etag"]})
        other = client.get("/api/v1/models?limit=1", headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content, other.status_code) == (304, b"", 200)


def test_a_models_page_has_all_that_is_known_of_it(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, _):
        model = client.get("/api/v1/models/shop.daily").json()
        missing = client.get("/api/v1/models/shop.dayly").json()

    assert model["columns"][1]["made_from"] == [{"model": "shop.items", "column": "price"}]
    assert model["row_deciders"] and model["audits"][0]["name"] == "not_null" and "BETWEEN" in model["query"]
    assert (model["readers"], model["deployed"], model["versions"]) == (["shop.total"], None, [])
    assert "Did you mean `shop.daily`?" in missing["detail"]


def test_lineage_goes_both_ways_and_row_deciders_stand_apart(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, _):
        up = client.get("/api/v1/lineage/shop.total").json()
        near = client.get("/api/v1/lineage/shop.items?direction=downstream&depth=1").json()
        column = client.get("/api/v1/lineage/shop.items/day?direction=downstream").json()
        nothing = client.get("/api/v1/lineage/shop.items/dai")

    assert [(model["name"], model["depth"]) for model in up["models"]] == [
        ("shop.total", 0), ("shop.daily", 1), ("shop.items", 2),
    ]  # fmt: skip
    assert ([model["name"] for model in near["models"]], near["more"]) == (["shop.items", "shop.daily"], True)
    assert {edge["how"] for edge in column["rows"]} == {"decides_rows"}
    assert {edge["how"] for edge in column["values"]} == {"made_from"}
    assert nothing.status_code == 404


def test_a_query_is_rendered_as_it_runs(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve(tmp_path) as (client, _):
        spark = client.get("/api/v1/render/shop.daily?start=2026-01-01&end=2026-01-02").json()["sql"]
        duck = client.get("/api/v1/render/shop.total?dialect=duckdb&expand=shop.daily&pretty=false").json()["sql"]
        wrong = [
            client.get(f"/api/v1/render/{text}").status_code
            for text in ("shop.items", "shop.no", "shop.daily?start=x", "shop.daily?dialect=klingon")
        ]

    assert "2026-01-01" in spark and "2026-01-02" in spark
    assert "FROM (SELECT" in duck.replace("( ", "(") and "\n" not in duck
    assert wrong == [422, 404, 422, 422]


def test_what_is_wrong_with_the_project_is_a_problem_with_its_place(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "config.yaml").write_text("gateways: {local: {connection: {type: spark, colour: red}}}\n")
    with serve(tmp_path) as (client, _):
        answer = client.get("/api/v1/models")

    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    assert answer.json()["errors"][0]["path"] == "config.yaml"
    assert "Traceback" not in answer.text


def test_a_model_that_cannot_be_opened_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "models/apart.sql").write_text("MODEL (name shop.apart, kind FUL);\nSELECT 1")
    with serve(tmp_path) as (client, _):
        page, lint = client.get("/api/v1/models").json(), client.get("/api/v1/lint").json()

    assert (page["total"], page["unopened"]) == (4, ["models/apart.sql"])
    assert not lint["ok"] and lint["violations"][0]["path"] == "models/apart.sql"
