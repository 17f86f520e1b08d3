"""A fingerprint is what it was in every earlier version: another one makes users compute their tables anew."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any

import pytest

from mergeplan.planner.fingerprint import encode_text
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, DbtVersions, History, Model, PythonCode, Seed
from mergeplan.planner.model.property import read_setting, replace_settings
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.model.statement import Statement

from .fingerprints import QUERY, make_pins, model_hashes, read_pins

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
FIELDS: list[tuple[str, Any]] = [
    ("audits", AuditCall("a")),
    ("columns", Column("id", "int", "x")),
    ("history", History(dbt=DbtVersions())),
    ("pre_statements", Statement("SET VAR x = 1")),
    ("post_statements", Statement("ANALYZE TABLE a", harmless=True)),
    ("on_virtual_update", Statement("GRANT a", harmless=True)),
    ("signals", SignalCall("a")),
    ("seed", Seed("s.csv", "1", ("id",))),
    ("python", PythonCode("a.py", "execute", "2")),
    ("cron", Cron("@daily")),
    ("auto_restatement_cron", Cron("@daily")),
]
KINDS = {"history": Kind.SCD_TYPE_2_BY_COLUMN, "seed": Kind.SEED}


def extend(value: Any) -> type[Any]:
    """Return the class of a value as a later version may have it: with one more field."""
    kind = type(value)
    return make_dataclass(kind.__name__, [("later", str, field(default="no"))], bases=(kind,), frozen=True)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_field_that_a_class_gets_later_is_written_only_where_it_is_set(value: Any) -> None:
    later = extend(value)

    assert encode_text(later(**vars(value))) == encode_text(value) == repr(value).replace(", dbt=None", "")
    assert encode_text(later(**vars(value), later="yes")) == f"{encode_text(value)[:-1]}, later='yes')"


@pytest.mark.parametrize(("name", "value"), FIELDS)
def test_a_field_that_a_class_gets_later_leaves_fingerprints_and_versions(name: str, value: Any) -> None:
    made = Model("s.t", KINDS.get(name, Kind.FULL), "", 1, "", "" if name in ("seed", "python") else QUERY)
    made = replace_settings(
        made, {"unique_key": ("id",) if name == "history" else (), "columns": (Column("id", "int"),)}
    )
    several = isinstance(read_setting(made, name), tuple)
    sides: list[dict[str, Any]] = [{name: (one,) if several else one} for one in (value, extend(value)(**vars(value)))]

    today, later = (model_hashes(replace_settings(made, side)) for side in sides)

    assert today == later


@pytest.mark.parametrize("value", [1.5, {"a": 1}, {1}, object(), Kind])
def test_what_has_no_text_that_stays_is_in_no_hash(value: object) -> None:
    with pytest.raises(TypeError, match="has no text in hashes"):
        encode_text(value)
