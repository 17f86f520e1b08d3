"""Differences between the rows of a table and those that its query returns."""

from dataclasses import replace

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Seed
from mergeplan.planner.model.statement import Statement, Statements
from tests.planner.building import change_of, external, model, project


@pytest.mark.parametrize("kind", [Kind.VIEW, Kind.EMBEDDED])
@pytest.mark.parametrize(("type_", "recomputed"), [("char(5)", True), ("varchar(5)", False), ("string", False)])
def test_a_reader_is_computed_again_when_a_view_with_char_becomes_a_table(
    kind: Kind, type_: str, recomputed: bool
) -> None:
    """A table has STRING in its place, and Spark pads only texts that it compares with a CHAR."""
    raw = replace(external("s.raw", "c"), columns=(Column("c", type_),))
    reader = model("s.reader", "SELECT COUNT(*) AS n FROM s.part WHERE c = 'ab'")
    view, table = (project(raw, model("s.part", "SELECT c FROM s.raw", of), reader) for of in (kind, Kind.FULL))

    assert change_of(view, table)["s.reader"].recomputed == recomputed
    assert change_of(table, view)["s.reader"].recomputed == recomputed


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("SELECT c FROM s.raw UNION ALL SELECT d FROM s.raw", "c"),
        ("SELECT c FROM s.raw INTERSECT SELECT d FROM s.raw", "c"),
        ("SELECT IF(d > '', STRUCT(c), STRUCT(c)).c FROM s.raw", "c"),
        ("SELECT (SELECT STRUCT(c) FROM s.raw).c AS c FROM s.raw", "c"),
        ("SELECT t.y FROM s.raw LATERAL VIEW INLINE(ARRAY(STRUCT(c))) t AS y", "y"),
        ("SELECT t.y.c FROM s.raw LATERAL VIEW EXPLODE(ARRAY(STRUCT(c))) t AS y", "c"),
    ],
)
def test_a_char_of_an_unknown_type_is_a_text_in_a_table(query: str, column: str) -> None:
    raw = replace(external("s.raw", "c d"), columns=(Column("c", "char(5)"), Column("d", "string")))
    reader = model("s.reader", f"SELECT COUNT(*) AS n FROM s.part WHERE {column} = 'ab'")
    view, table = (project(raw, model("s.part", query, kind), reader) for kind in (Kind.VIEW, Kind.FULL))

    assert change_of(view, table)["s.reader"].recomputed


@pytest.mark.parametrize("top", ["s.part", "s.more"])
@pytest.mark.parametrize(("setting", "recomputed"), [("spark.sql.ansi.enabled", True), ("", False)])
def test_a_reader_with_settings_is_computed_again_when_an_embedded_query_becomes_a_view(
    top: str, setting: str, recomputed: bool
) -> None:
    """A view keeps the settings under which it was created; an embedded query runs under those of its reader."""
    statements = Statements((Statement(f"SET {setting} = false"),) if setting else ())
    reader = replace(model("s.reader", f"SELECT d FROM {top}"), statements=statements)
    more = model("s.more", "SELECT d FROM s.part", Kind.EMBEDDED)
    parts = (model("s.part", "SELECT CAST(t AS DATE) AS d FROM s.raw", kind) for kind in (Kind.VIEW, Kind.EMBEDDED))
    view, inlined = (project(external("s.raw", "t"), part, more, reader) for part in parts)

    assert change_of(view, inlined)["s.reader"].recomputed == recomputed
    assert change_of(inlined, view)["s.reader"].recomputed == recomputed


def test_a_setting_of_a_seed_loads_its_cells_again() -> None:
    """A time in a cell is one of the session's zone."""
    seed = replace(model("s.seed", kind=Kind.SEED, columns="t"), seed=Seed("seed.csv", header=("t",), digest="1"))
    zone = Statements((Statement("SET spark.sql.session.timeZone = Asia/Tokyo"),))
    before, after = (
        project(seed_model, model("s.reader", "SELECT t FROM s.seed"))
        for seed_model in (seed, replace(seed, statements=zone))
    )

    assert {name for name, change in change_of(before, after).items() if change.recomputed} == {"s.seed", "s.reader"}


@pytest.mark.parametrize("kind", [Kind.VIEW, Kind.EMBEDDED])
def test_a_query_that_becomes_a_table_has_its_declared_types_there_alone(kind: Kind) -> None:
    typed = replace(model("s.part", "SELECT id FROM s.raw", kind), columns=(Column("id", "int"),))
    raw, reader = external("s.raw", "id"), model("s.reader", "SELECT id FROM s.part")
    query, table = (project(raw, part, reader) for part in (typed, replace(typed, kind=Kind.FULL)))

    assert change_of(query, table)["s.reader"].recomputed
    assert change_of(table, query)["s.reader"].recomputed


@pytest.mark.parametrize(("setting", "recomputed"), [("spark.sql.ansi.enabled", True), ("", False)])
def test_a_reader_with_settings_takes_an_embedded_query_as_it_is_written(setting: str, recomputed: bool) -> None:
    """Without ANSI a text is compared with one number as a number, and with several as a text."""
    statements = Statements((Statement(f"SET {setting} = false"),) if setting else ())
    typed = model("s.typed", "SELECT CAST(id = 1 AS STRING) AS x FROM s.raw")
    reader = replace(model("s.reader", "SELECT p FROM s.part"), statements=statements)
    parts = ("NOT x IN (1, 2)", "NOT (x = 1 OR x = 2)")
    before, after = (
        project(external("s.raw", "id"), typed, model("s.part", f"SELECT {p} AS p FROM s.typed", Kind.EMBEDDED), reader)
        for p in parts
    )

    changes = change_of(before, after)
    assert ("s.reader" in changes and changes["s.reader"].recomputed) == recomputed


def test_a_temporary_view_takes_columns_by_their_place_for_its_query() -> None:
    raw = replace(external("s.raw", ""), columns=(Column("id", "string"), Column("x", "string")))
    view = Statement("CREATE TEMPORARY VIEW both AS", "SELECT * FROM s.part UNION ALL SELECT * FROM s.raw", "both")
    reader = replace(model("s.reader", "SELECT id FROM both"), depends_on=("s.part", "s.raw"))
    reader = replace(reader, statements=Statements((view,)))
    plain, cut = (model("s.part", "SELECT id, x FROM s.raw", partitioned_by=by) for by in ((), ("id",)))

    assert change_of(project(raw, plain, reader), project(raw, cut, reader))["s.reader"].recomputed
