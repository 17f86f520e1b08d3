"""A fingerprint is what it was in every earlier version: another one makes users compute their tables anew."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any

import pytest

from mergeplan.planner.fingerprint import encode_text
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import AuditCall, Column, DbtVersions, History, SignalCall, Statement

from .fingerprints import make_pins, read_pins

PINS = read_pins()


@pytest.mark.parametrize("name", PINS)
def test_a_model_keeps_its_fingerprint_and_version(name: str) -> None:
    assert make_pins()[name] == PINS[name]


def test_every_property_has_its_fingerprint_written_down() -> None:
    assert make_pins().keys() <= PINS.keys(), "run `python -m tests.planner.fingerprints`, which adds the new lines"


VALUES = [
    AuditCall("a"),
    Column("a", "int"),
    DbtVersions(),
    History(dbt=DbtVersions()),
    SignalCall("a"),
    Statement("a"),
]


def extend(value: Any) -> type[Any]:
    """Return the class of a value as a later version may have it: with one more field."""
    kind = type(value)
    return make_dataclass(kind.__name__, [("later", str, field(default="no"))], bases=(kind,), frozen=True)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_field_that_a_class_gets_later_is_written_only_where_it_is_set(value: Any) -> None:
    later = extend(value)

    assert encode_text(later(**vars(value))) == encode_text(value) == repr(value).replace(", dbt=None", "")
    assert encode_text(later(**vars(value), later="yes")) == f"{encode_text(value)[:-1]}, later='yes')"


@pytest.mark.parametrize("value", [1.5, {"a": 1}, {1}, object(), Kind])
def test_what_has_no_text_that_stays_is_in_no_hash(value: object) -> None:
    with pytest.raises(TypeError, match="has no text in hashes"):
        encode_text(value)
