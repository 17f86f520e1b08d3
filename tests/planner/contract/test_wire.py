"""The contract: what is written is as published, and a reader takes newer keys and refuses another version."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest

from mergeplan.planner.apply.events import Stage
from mergeplan.planner.contract.lines import BatchLine, ErrorLine, WaitingLine
from mergeplan.planner.contract.plan import ModelChange, PlanView
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import LINES, Line, lines_schema, read_line, serialize_line
from mergeplan.planner.errors import RequestError
from mergeplan.planner.plan.change import Category, ChangeKind
from mergeplan.planner.project.lineage import How
from tests.planner.cli.test_start import imports_of
from tests.wire import SCHEMA, check_line

DAY = ("2026-01-01", "2026-01-02")
ORDERS = ModelChange(name="shop.orders", change="direct", category="breaking", intervals=(DAY,))
PLAN = PlanView(id="p1", environment="dev", models=(ORDERS,))


def test_the_published_schema_is_that_of_the_lines() -> None:
    published = json.loads(SCHEMA.read_text())

    assert published == lines_schema(), "mergeplan schema plan > docs/schema/plan.json"
    assert len(published["oneOf"]) == len(LINES)


@pytest.mark.parametrize("line", [ResultLine(ok=True, plan=PLAN), ErrorLine(message="x"), WaitingLine(holder="ann")])
def test_what_is_written_is_as_published_and_reads_as_the_same(line: Line) -> None:
    check_line(serialize_line(line))

    assert read_line(serialize_line(line)) == line


def test_the_schema_refuses_what_the_planner_never_writes() -> None:
    wrong = json.loads(serialize_line(ResultLine(ok=True, plan=PLAN)))
    wrong["plan"]["models"][0]["category"] = "dangerous"
    with pytest.raises(jsonschema_rs.ValidationError, match="dangerous"):
        check_line(json.dumps(wrong))


def test_a_key_that_does_not_apply_is_left_out() -> None:
    assert json.loads(serialize_line(ResultLine(ok=True))) == {
        "event": "result",
        "version": 1,
        "ok": True,
        "applied": False,
    }


def test_a_reader_passes_over_keys_that_it_does_not_know() -> None:
    told = json.loads(serialize_line(ResultLine(ok=True, plan=PLAN)))
    told["plan"]["models"][0]["colour"] = "red"

    assert read_line(json.dumps({**told, "more": [1]})) == ResultLine(ok=True, plan=PLAN)


def test_a_reader_refuses_another_version_in_a_sentence_whatever_else_changed() -> None:
    with pytest.raises(
        RequestError, match=r"writes version 2 of its JSON, and this is mergeplan with version 1\."
    ) as told:
        read_line('{"event": "result", "version": 2, "ended": "well"}')

    assert told.value.hint == "Install the same mergeplan on both sides."


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "1", "null", "{}", '{"event": "later"}', '{"event": []}', '{"event": "result"}',
     '{"event": "plan"}', '{"event": "batch", "model": 1}', '{"event": "result", "ok": "\\ud800"}', "[" * 10_000,
     "\x00", "é"],
)  # fmt: skip
def test_what_is_no_line_reads_as_none(text: str) -> None:
    assert read_line(text) is None


@pytest.mark.parametrize(
    ("known", "name"),
    [(Category, "ModelChange.category"), (ChangeKind, "ModelChange.change"), (How, "LineageEdge.how"),
     ((*Stage, "tests"), "StageLine.name")],
)  # fmt: skip
def test_the_schema_names_every_word_that_the_planner_has(known: tuple[str, ...], name: str) -> None:
    data, _, key = name.partition(".")
    field = lines_schema()["$defs"][data]["properties"][key]
    words = field["enum"] if "enum" in field else field["anyOf"][0]["enum"]

    assert sorted(words) == sorted(str(word) for word in known)


def test_every_key_is_described() -> None:
    shapes = lines_schema()["$defs"].values()
    assert all(shape["description"] for shape in shapes)
    assert [key for shape in shapes for key, property_schema in shape["properties"].items()
            if key not in ("event",) and not property_schema.get("description")] == []  # fmt: skip


def test_reading_lines_imports_no_sql_and_no_spark() -> None:
    modules = imports_of("import mergeplan.planner.contract.wire")

    assert not modules & {"pyspark", "sqlglot", "sqlalchemy", "pandas", "rich", "click", "yaml"}


def test_frozen_lines_can_be_compared_and_kept_in_sets() -> None:
    batch = BatchLine(model="a.b", index=1, of=2, interval=DAY, rows=1, seconds=0.1)

    assert len({batch, batch.model_copy()}) == 1
