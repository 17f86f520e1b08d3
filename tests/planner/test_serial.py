"""Dataclasses to JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Metadata
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.semantics.shape import Reads, Shape
from mergeplan.planner.serial import EMBEDDED, decode_json, decode_line, encode_json, encode_line
from mergeplan.planner.snapshot.snapshot import Snapshot
from tests.planner.test_every_property import FIELDS

st.register_type_strategy(datetime, st.datetimes(timezones=st.just(UTC)))
st.register_type_strategy(Cron, st.sampled_from(["@daily", "0 * * * *"]).map(Cron))


@settings(deadline=None)
@given(snapshot=st.builds(Snapshot))
def test_a_snapshot_comes_back_through_text(snapshot: Snapshot) -> None:
    text = json.dumps(encode_json(snapshot))

    assert decode_json(Snapshot, json.loads(text)) == snapshot


def test_defaults_are_left_out_so_that_a_new_field_changes_no_old_text() -> None:
    model = Model("s.a", Kind.FULL, "a.sql", 1, "SELECT 1")

    assert encode_json(model) == {"name": "s.a", "kind": "FULL", "path": "a.sql", "line": 1, "source": "SELECT 1"}


def test_the_json_of_a_model_names_its_settings_and_no_part() -> None:
    made = replace_settings(Model("s.a", Kind.FULL, "a.sql", 1, "SELECT 1"), FIELDS)

    data = encode_json(made)

    assert data.keys() == FIELDS.keys() | {"name", "path", "line", "source"}
    assert decode_json(Model, json.loads(json.dumps(data))) == made


@dataclass(frozen=True)
class Layout:
    cut: tuple[str, ...] = ()
    form: str = "a"


@dataclass(frozen=True)
class Table:
    name: str
    layout: Layout = field(default=Layout(), metadata=EMBEDDED)


@pytest.mark.parametrize("table", [Table("t"), Table("t", Layout(("id",))), Table("t", Layout((), "b"))])
def test_the_fields_of_a_part_are_written_beside_those_of_the_whole(table: Table) -> None:
    data = encode_json(table)

    assert "layout" not in data
    assert decode_json(Table, json.loads(json.dumps(data))) == table


@pytest.mark.parametrize("data", [{"name": 1, "kind": "FULL"}, {"name": "s.a", "kind": "ODD"}, {"unknown": 1}])
def test_data_of_another_shape_is_an_error(data: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        decode_json(Model, data)


def test_what_has_no_form_is_an_error() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        encode_json(object())


@pytest.mark.parametrize("kind", [Model, Snapshot])
def test_a_field_without_a_default_must_be_there(kind: type) -> None:
    with pytest.raises(TypeError):
        decode_json(kind, {"name": "s.a"} if kind is Model else {"version": "1"})


def test_what_is_read_is_what_would_be_made() -> None:
    shape = Shape(True, "t", None, reads={"s.a": Reads(frozenset("ab"))})

    read = decode_json(Shape, json.loads(json.dumps(encode_json(shape))))

    assert read == shape
    assert read.frame is not decode_json(Shape, encode_json(shape)).frame  # a default that is made for each


def test_equal_lines_are_one_value_and_different_ones_are_two() -> None:
    model = Model("s.a", Kind.FULL, "a.sql", 1, "SELECT 1\nFROM t", metadata=Metadata(description="ä\u2028"))
    line = encode_line(model)

    first, second = decode_line(Model, line), decode_line(Model, line[:-1] + line[-1])

    assert first == model and first is second
    assert "\n" not in line and decode_line(Model, line.replace("s.a", "s.b")).name == "s.b"


@pytest.mark.parametrize("line", ["", "{", "null", '{"name": 1}'])
def test_a_damaged_line_is_an_error_each_time(line: str) -> None:
    for _ in range(2):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            decode_line(Model, line)
