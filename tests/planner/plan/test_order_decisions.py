"""The order of rows through models: a view or an embedded model says how it is written, a table does not."""

from __future__ import annotations

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Change
from tests.planner.building import NOW, change_of, external, model, project


def view_model(name: str, sql: str) -> Model:
    """A view as the project's files say it."""
    read, _ = parse_model(f"MODEL (name {name}, kind VIEW);\n{sql}", "models/v.sql", Defaults(NOW))
    assert read is not None
    return read


READERS = {
    "s.first": "SELECT id FROM s.v LIMIT 2",
    "s.listed": "SELECT COLLECT_LIST(id) AS ids, MAX(x) AS x FROM s.v",
    "s.counted": "SELECT COUNT(*) AS n FROM s.v",
    "s.top": "SELECT x FROM s.listed",
}


def changes(before: str, after: str, kind: Kind = Kind.VIEW) -> dict[str, Change]:
    sources = [external("s.a", "id x d"), external("s.b", "id")]
    readers = [model(name, sql) for name, sql in READERS.items()]
    one, two = (project(*sources, model("s.v", sql, kind), *readers) for sql in (before, after))
    return change_of(one, two)


@pytest.mark.parametrize("kind", [Kind.VIEW, Kind.EMBEDDED])
def test_another_order_of_a_view_reaches_those_that_take_rows_by_it(kind: Kind) -> None:
    by_name = changes("SELECT id, x FROM s.a ORDER BY x", "SELECT id, x FROM s.a ORDER BY x DESC", kind)

    assert (by_name["s.v"].category, by_name["s.v"].rule) == ("breaking", "order-changed")
    assert (by_name["s.first"].rule, by_name["s.first"].recomputed) == ("reads-changed-order", True)
    assert (by_name["s.listed"].rule, by_name["s.listed"].columns.altered) == (
        "reads-changed-order",
        frozenset({"ids"}),
    )
    assert not by_name["s.counted"].recomputed
    assert not by_name["s.top"].recomputed


def test_a_view_that_is_sorted_otherwise_is_made_anew() -> None:
    change = changes("SELECT id, x FROM s.a ORDER BY x", "SELECT id, x FROM s.a")["s.v"]

    assert change.old is not None
    assert change.new is not None
    assert change.old.version != change.new.version


def test_a_view_written_otherwise_is_equivalent_and_still_tells_who_takes_its_first_rows() -> None:
    join = "SELECT a.id, a.x FROM {} ON a.id = b.id"
    by_name = changes(join.format("s.a JOIN s.b"), join.format("s.b JOIN s.a"))

    assert (by_name["s.v"].category, by_name["s.v"].rule) == ("equivalent", "same-query")
    assert {name for name, change in by_name.items() if change.recomputed} == {"s.first", "s.listed"}


def test_a_view_with_other_names_tells_nobody() -> None:
    by_name = changes("SELECT id, x FROM s.a ORDER BY x", "SELECT k.id, k.x FROM s.a AS k ORDER BY k.x -- sorted")

    assert not any(change.recomputed for change in by_name.values())


def test_the_rows_of_a_table_lie_in_no_order() -> None:
    by_name = changes("SELECT id, x FROM s.a ORDER BY x", "SELECT id, x FROM s.a ORDER BY x DESC", Kind.FULL)

    assert by_name["s.v"].category == "equivalent"
    assert not any(change.recomputed for change in by_name.values())


def test_an_order_is_passed_on_by_a_view_over_a_view() -> None:
    source = external("s.a", "id x")
    above = [model("s.w", "SELECT * FROM s.v", Kind.VIEW), model("s.k", "SELECT FIRST(id) AS f FROM s.w")]
    before, after = (
        project(source, model("s.v", f"SELECT id, x FROM s.a ORDER BY x{way}", Kind.VIEW), *above)
        for way in ("", " DESC")
    )

    by_name = change_of(before, after)

    assert [by_name[name].rule for name in ("s.v", "s.w", "s.k")] == ["order-changed", *["reads-changed-order"] * 2]


def test_a_query_that_is_not_read_into_the_algebra_minds_the_order_of_a_view() -> None:
    sources = external("s.a", "id x")
    child = model("s.k", "WITH RECURSIVE r AS (SELECT id FROM s.v) SELECT id FROM r LIMIT 2")
    before, after = (
        project(sources, model("s.v", f"SELECT id, x FROM s.a ORDER BY x{way}", Kind.VIEW), child)
        for way in ("", " DESC")
    )

    assert change_of(before, after)["s.k"].recomputed


@pytest.mark.parametrize("value", ["-1::STRING", "1L", "TIME '10:00:00'"])  # which the tree does not tell from others
def test_an_order_of_a_view_that_the_parser_misreads_reaches_those_that_take_rows_by_it(value: str) -> None:
    readers = (view_model("s.w", f"SELECT id, {value} AS u FROM s.v"), model("s.k", "SELECT id FROM s.w LIMIT 2"))
    before, after = (
        project(
            external("s.a", "id x"), view_model("s.v", f"SELECT id, {value} AS v FROM s.a ORDER BY x{way}"), *readers
        )
        for way in ("", " DESC")
    )
    assert before["s.v"].written.misread

    by_name = change_of(before, after)

    assert by_name["s.v"].category == "breaking"
    assert by_name["s.k"].recomputed
