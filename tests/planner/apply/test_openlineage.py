"""OpenLineage: what an applied plan tells, and that telling never holds it up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.apply.events import BatchDone, Event, ModelFailed, ModelStarted
from mergeplan.planner.apply.openlineage.facets import Scene
from mergeplan.planner.apply.openlineage.listener import Listener
from mergeplan.planner.apply.openlineage.transport import Sender, file_transport, http_transport, server_name
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, external, make_plan, model, project

ORDERS = model(
    "shop.orders",
    "SELECT o.id, o.price * 2 AS twice FROM raw.orders AS o WHERE o.day > '2026'",
    owner="ann",
    description="Orders.",
    column_descriptions=(("twice", "two times the price"),),
)
INNER = model("shop.within", "SELECT id AS key, twice FROM shop.orders", Kind.EMBEDDED)
OUTER = model("shop.total", "SELECT sum(i.twice) AS total FROM shop.within AS i WHERE i.key > 1")
SHOP = project(external("raw.orders", "id price day"), ORDERS, INNER, OUTER)
DAY = Interval(day("2026-01-01"), day("2026-01-02"))


def report_events(plan: Plan, *events: Event, failure: str | None = None) -> list[dict[str, Any]]:
    """All that is told of a plan in which this happens."""
    told: list[dict[str, Any]] = []
    ids = count(1)
    listener = Listener(Scene(plan, "acme"), told.append, lambda: NOW, lambda: f"run-{next(ids)}")
    listener.begin()
    for event in events:
        listener.event(event)
    listener.end(failure)
    return told


def batch(name: str, index: int = 1, of: int = 1, rows: int = 3) -> BatchDone:
    return BatchDone(name, index, of, DAY, rows, 0.1, 0)


def test_a_model_is_a_run_within_the_plans_run() -> None:
    told = report_events(
        make_plan(SHOP), ModelStarted("shop.orders", 2), batch("shop.orders"), batch("shop.orders", 2, 2)
    )

    assert [(event["eventType"], event["job"]["name"], event["run"]["runId"]) for event in told] == [
        ("START", "plan.prod", "run-1"),
        ("START", "shop.orders", "run-2"),
        ("COMPLETE", "shop.orders", "run-2"),
        ("COMPLETE", "plan.prod", "run-1"),
    ]
    parent = told[1]["run"]["facets"]["parent"]
    assert (parent["run"], parent["job"]) == ({"runId": "run-1"}, {"namespace": "acme", "name": "plan.prod"})
    assert told[2]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 6


def test_a_table_that_was_left_as_it_is_has_no_number_of_rows() -> None:
    kept = replace(batch("shop.orders", rows=0), unchanged=True)

    complete = report_events(make_plan(SHOP), ModelStarted("shop.orders", 1), kept)[2]

    assert complete["eventType"] == "COMPLETE"
    assert "outputFacets" not in complete["outputs"][0]


def test_a_table_is_told_with_its_columns_and_what_they_are_made_from() -> None:
    told = report_events(make_plan(SHOP), ModelStarted("shop.orders", 1))[1]

    (source,), (table,) = told["inputs"], told["outputs"]
    assert (source["name"], table["name"]) == ("raw.orders", "shop.orders")
    assert [field["name"] for field in source["facets"]["schema"]["fields"]] == ["id", "price", "day"]
    assert table["facets"]["schema"]["fields"][1] == {"name": "twice", "description": "two times the price"}
    lineage = table["facets"]["columnLineage"]
    made = {"namespace": "acme", "name": "raw.orders", "field": "price", "transformations": [{"type": "DIRECT"}]}
    assert lineage["fields"]["twice"]["inputFields"] == [made]
    assert lineage["dataset"] == [{**made, "field": "day", "transformations": [{"type": "INDIRECT"}]}]
    assert told["job"]["facets"]["ownership"]["owners"] == [{"name": "ann"}]
    assert told["job"]["facets"]["sql"]["query"] == ORDERS.sql
    assert table["facets"]["symlinks"]["identifiers"][0]["name"].startswith("mergeplan__shop.shop__orders__")


def test_an_embedded_model_is_seen_through() -> None:
    told = report_events(make_plan(SHOP), ModelStarted("shop.total", 1))[1]

    lineage = told["outputs"][0]["facets"]["columnLineage"]
    assert [input_["name"] for input_ in told["inputs"]] == ["shop.orders"]
    assert [(field["name"], field["field"]) for field in lineage["fields"]["total"]["inputFields"]] == [
        ("shop.orders", "twice")
    ]
    assert [(field["name"], field["field"]) for field in lineage["dataset"]] == [("shop.orders", "id")]


def test_what_cannot_be_followed_has_no_column_lineage() -> None:
    lost = model("shop.lost", "SELECT id, n FROM raw.unknown")

    told = report_events(make_plan(project(lost)), ModelStarted("shop.lost", 1))[1]

    assert "columnLineage" not in told["outputs"][0]["facets"]
    assert told["inputs"] == [{"namespace": "acme", "name": "raw.unknown", "facets": {}}]


def test_in_another_environment_a_table_has_that_environments_name() -> None:
    plan = make_plan(SHOP, Environment("dev"), Environment("prod"))

    told = report_events(plan, ModelStarted("shop.orders", 1))

    assert (told[0]["job"]["name"], told[1]["outputs"][0]["name"]) == ("plan.dev", "shop__dev.orders")
    assert told[1]["inputs"][0]["name"] == "raw.orders"


def test_a_failure_is_told_and_what_was_broken_off_is_aborted() -> None:
    events = (ModelStarted("shop.orders", 1), ModelStarted("shop.total", 2), ModelFailed("shop.orders", "no such row"))

    told = report_events(make_plan(SHOP), *events, failure="no such row")

    ends = [(event["eventType"], event["job"]["name"]) for event in told[3:]]
    assert ends == [("FAIL", "shop.orders"), ("ABORT", "shop.total"), ("FAIL", "plan.prod")]
    assert told[3]["run"]["facets"]["errorMessage"]["message"] == "no such row"


def test_the_time_that_is_computed_is_told() -> None:
    query = "SELECT id, d FROM raw.orders WHERE d BETWEEN @start_date AND @end_date"
    by_day = model("shop.daily", query, Kind.INCREMENTAL_BY_TIME_RANGE, time_column="d", start=day("2026-01-01"))
    by_day = replace(by_day, columns=(Column("id", "int"), Column("d", "date")))

    told = report_events(make_plan(project(by_day)), ModelStarted("shop.daily", 1))[1]

    time = told["run"]["facets"]["nominalTime"]
    assert (time["nominalStartTime"][:10], time["nominalEndTime"][:10]) == ("2026-01-01", "2026-01-10")
    assert told["outputs"][0]["facets"]["schema"]["fields"][0] == {"name": "id", "type": "int"}


def test_every_facet_says_who_made_it_and_by_which_schema() -> None:
    told = report_events(make_plan(SHOP), ModelStarted("shop.orders", 1), batch("shop.orders"))

    def facets(value: Any) -> Iterator[dict[str, Any]]:
        for key, child in (
            value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
        ):
            if key in ("facets", "outputFacets"):
                yield from child.values()
            yield from facets(child)

    all_facets = [facet for event in told for facet in facets(event)]
    assert len(all_facets) > 10
    assert all(facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/") for facet in all_facets)
    assert all(facet["_producer"] == "urn:mergeplan" for facet in all_facets)


class _Server(HTTPServer):
    got: list[tuple[str, str, dict[str, Any]]]
    answer = 201


class _Hears(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:  # the name that the library asks for
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, self.headers.get("Authorization", ""), body))
        self.send_response(self.server.answer)
        self.send_header("Location", "http://127.0.0.1:9/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """In silence."""


@contextmanager
def server(answer: int = 201) -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Hears) as receiver:
        receiver.got, receiver.answer = [], answer
        thread = threading.Thread(target=receiver.serve_forever, args=(0.01,))
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


def test_events_are_posted_in_order_with_the_key() -> None:
    with server() as other:
        sender = Sender(http_transport(f"http://127.0.0.1:{other.server_port}/api/v1/lineage", "s3cret", 5))
        for number in range(3):
            sender.send({"n": number})
        lost = sender.close()

    assert lost is None
    assert other.got == [("/api/v1/lineage", "Bearer s3cret", {"n": number}) for number in range(3)]


@pytest.mark.parametrize(("answer", "told"), [(500, "it answered 500"), (307, "it answered 307")])
def test_what_a_server_refuses_is_counted_and_a_redirect_is_not_followed(answer: int, told: str) -> None:
    with server(answer) as other:
        sender = Sender(http_transport(f"http://127.0.0.1:{other.server_port}/x", "s3cret", 5))
        sender.send({})
        lost = sender.close()

    assert lost is not None
    assert (lost.count, lost.reason) == (1, told)


def test_a_server_that_hangs_holds_nobody_up() -> None:
    hanging = threading.Event()

    def hang(_: object) -> None:
        hanging.wait(20)

    sender = Sender(hang)
    for _ in range(3):
        sender.send({})

    lost = sender.close(wait=0.05)
    hanging.set()

    assert lost is not None
    assert (lost.count, lost.reason) == (3, "not sent within 0 seconds")


def test_a_file_gets_a_line_an_event(tmp_path: Path) -> None:
    sender = Sender(file_transport(tmp_path / "logs" / "lineage.jsonl"))
    sender.send({"n": 1})
    sender.send({"n": 2})

    assert sender.close() is None
    assert (tmp_path / "logs" / "lineage.jsonl").read_text() == '{"n": 1}\n{"n": 2}\n'


def test_a_servers_name_holds_no_secret() -> None:
    assert server_name("https://ann:s3cret@lineage.internal:8443/x?key=s3cret") == "https://lineage.internal:8443"
