"""A property that comes later needs no more than its row: what an edit of it does follows from that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import PROPERTIES, Model
from mergeplan.planner.model.property import Facet, declare, replace_settings
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.plan.forward_only import why_not
from mergeplan.planner.serial import EMBEDDED, is_embedded
from mergeplan.planner.snapshot.snapshot import Snapshot
from tests.planner import test_every_property as properties
from tests.planner.building import any_columns, change_of, external, model, project, promote

DOCS = Path(__file__).parents[3] / "docs" / "reference"
RULES = {Facet.ROWS: "settings-changed", Facet.LAYOUT: "layout-changed", Facet.METADATA: "metadata-only"}


@pytest.fixture(autouse=True)
def _with_any_columns() -> Iterator[None]:
    with any_columns():
        yield


@dataclass(frozen=True)
class LaterPart:
    """Settings of a later version that belong together."""

    bloom_filter: tuple[str, ...] = declare((), Facet.LAYOUT, "columns with a filter")
    row_groups: int = declare(0, Facet.LAYOUT, "the size of a group")


@dataclass(frozen=True)
class LaterModel(Model):
    """A model of a later version."""

    sampled: bool = declare(False, Facet.ROWS, "a part of the rows")
    files: LaterPart = field(default=LaterPart(), metadata=EMBEDDED)
    contact: str = declare("", Facet.METADATA, "whom to ask")
    color: int = declare(0, Facet.NONE, "its color")


COUNTED = "SELECT id, COUNT(*) AS n FROM s.raw GROUP BY id"
STORED = [kind for kind in properties.KIND if kind.is_stored]


def later_model(kind: Kind, **values: Any) -> LaterModel:
    parts = {"partitioned_by": "(n)"} if kind is Kind.INCREMENTAL_BY_PARTITION else {}
    made = properties.read(properties.KIND[kind], **parts)
    later = LaterModel(**{row.name: getattr(made, row.name) for row in fields(Model)})
    return replace_settings(later, values)


def edit(before: LaterModel, after: LaterModel) -> dict[str, Change]:
    raw, reader = external("s.raw", "id n d e"), model("s.reader", "SELECT id FROM s.t")
    return change_of(project(raw, before, reader), project(raw, after, reader))


def edits(kind: Kind, **values: Any) -> list[dict[str, Change]]:
    """Return the changes by setting a property, and by taking it back."""
    before, after = later_model(kind), later_model(kind, **values)
    return [edit(before, after), edit(after, before)]


def sides(change: Change) -> tuple[Snapshot, Snapshot]:
    assert change.old
    assert change.new
    return change.old, change.new


@pytest.mark.parametrize("kind", properties.KIND)
def test_a_property_at_its_default_leaves_the_fingerprint_and_the_version(kind: Kind) -> None:
    later = later_model(kind)
    today = Model(**{row.name: getattr(later, row.name) for row in fields(Model)})
    raw = external("s.raw", "id n d e")
    old, new = (promote(project(raw, made))[0].snapshots["s.t"] for made in (today, later))

    assert (old.fingerprint, old.version, old.meaning) == (new.fingerprint, new.version, new.meaning)


@pytest.mark.parametrize("kind", [kind for kind in properties.KIND if not kind.traits.always_forward_only])
def test_an_edit_of_rows_makes_another_table_and_another_of_what_reads_it(kind: Kind) -> None:
    for changes in edits(kind, sampled=True):
        change, reader = changes["s.t"], changes["s.reader"]

        assert (change.category, change.rule) == (Category.BREAKING, "settings-changed")
        assert "`sampled` changed" in change.reason
        assert reader.category is Category.INDIRECT_BREAKING
        for old, new in (sides(change), sides(reader)):
            assert old.version != new.version
        old, new = sides(change)
        assert old.fingerprint.data != new.fingerprint.data


def test_of_rows_that_a_property_decides_neither_keys_nor_types_are_known() -> None:
    raw = external("s.raw", "id n d e")
    plain, sampled = (replace(later_model(Kind.FULL, sampled=on), sql=COUNTED) for on in (False, True))
    before, after = (promote(project(raw, made))[0].snapshots["s.t"].meaning for made in (plain, sampled))

    assert before
    assert after
    assert (before.keys, before.types) != ((), ())
    assert (after.keys, after.types) == ((), ())


@pytest.mark.parametrize("kind", STORED)
def test_an_edit_of_the_layout_makes_a_table_of_the_same_rows(kind: Kind) -> None:
    for changes in edits(kind, bloom_filter=("id",)):
        change = changes["s.t"]
        old, new = sides(change)

        assert (change.category, change.rule) == (Category.NON_BREAKING, "layout-changed")
        assert "`bloom_filter` changed" in change.reason
        assert old.version != new.version
        assert old.fingerprint.data != new.fingerprint.data
        assert old.meaning == new.meaning


@pytest.mark.parametrize("kind", [kind for kind in properties.KIND if not kind.is_stored])
def test_what_has_no_table_has_no_layout(kind: Kind) -> None:
    assert edits(kind, bloom_filter=("id",)) == [{}, {}]


def test_a_table_of_another_layout_does_not_take_over_files() -> None:
    before, after = later_model(Kind.FULL), later_model(Kind.FULL, bloom_filter=("id",))

    for old, new in ((before, after), (after, before)):
        assert why_not(old, new) == "its `bloom_filter` changed, and with it its files"


@pytest.mark.parametrize("kind", properties.KIND)
def test_an_edit_of_metadata_keeps_the_table(kind: Kind) -> None:
    for changes in edits(kind, contact="ann"):
        change = changes["s.t"]
        old, new = sides(change)

        assert (change.category, change.rule) == (Category.METADATA, "metadata-only")
        assert "`contact` changed" in change.reason
        assert old.version == new.version
        assert old.fingerprint.data == new.fingerprint.data
        assert old.fingerprint.metadata != new.fingerprint.metadata


@pytest.mark.parametrize("kind", properties.KIND)
def test_an_edit_of_what_is_in_no_fingerprint_is_no_change(kind: Kind) -> None:
    assert edits(kind, color=3) == [{}, {}]


@pytest.mark.parametrize("key", PROPERTIES)
def test_a_row_says_what_an_edit_is_seen_to_be(key: str) -> None:
    names = {properties.ROWS: Facet.ROWS, properties.LAYOUT: Facet.LAYOUT, properties.SAID: Facet.METADATA}
    effects = {effect for _, _, by_kind in properties.PROPERTIES.get(key, ()) for effect in by_kind.values()}
    effects |= {effect for _, name, _, _, effect in properties.kind_settings() if name == key}

    assert {names[effect] for effect in effects} == {PROPERTIES[key].facet}


@pytest.mark.parametrize("key", PROPERTIES)
def test_the_reference_says_of_a_property_what_its_row_says(key: str) -> None:
    row = PROPERTIES[key]
    page = (DOCS / ("kinds.md" if row.kinds else "projects.md")).read_text()
    lines = [line for line in page.splitlines() if line.startswith("| ") and f"`{key}" in line.split(" | ")[0]]
    rules = (DOCS / "categories.md").read_text().splitlines()

    assert any(row.doc in line for line in lines), f"no row of the page says of `{key}`: {row.doc}"
    assert any(f"`{key}`" in line for line in rules if line.startswith(f"| `{RULES[row.facet]}`"))


def test_no_two_parts_of_a_model_have_a_setting_of_one_name() -> None:
    parts = [type(row.default) for row in fields(Model) if is_embedded(row)]
    names = [row.name for whole in (Model, *parts) for row in fields(whole)]

    assert parts and sorted(set(names)) == sorted(names)
