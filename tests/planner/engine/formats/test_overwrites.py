"""Rows that take the place of those from which they are computed: repeated and taken back, on each format."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import PartitionColumn, Table
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT
from tests.sampling import prove_rest

COLUMNS = (Column("day", "date"), Column("n", "int"))
BY_DAY = PartitionColumn("day", "date", "`day`", hidden=False)
CUT = Table("s.cut", COLUMNS, format=FORMAT or "parquet", parts=(BY_DAY,), listed=True)
OLD = "SELECT * FROM VALUES (date'2026-01-01', 1), (date'2026-01-02', 2), (NULL, 3) AS t(day, n)"
# The last partition and that of rows without a day are replaced, and one is added.
NEXT = "SELECT day, n + 10 AS n FROM s.cut WHERE day IS NULL OR day = (SELECT max(day) FROM s.cut) UNION ALL "
NEXT += "SELECT date_add(max(day), 1), 0 FROM s.cut"


def rows(engine: SparkEngine) -> list[tuple[object, ...]]:
    records = engine.fetch("SELECT cast(day AS string), n FROM s.cut ORDER BY ALL").rows
    return [(str(day or "none")[-2:], n) for day, n in records]


WHOLE = Table(CUT.name, COLUMNS, format=CUT.format)


@pytest.mark.parametrize("table", prove_rest([CUT, WHOLE]), ids=["partitions", "all rows"])
def test_a_batch_is_repeated_from_before_it_and_taken_back(table: Table, engine: SparkEngine) -> None:
    before = [("ne", 3), ("01", 1), ("02", 2)]
    after = [("ne", 13), *before[1:2][: len(table.parts)], ("02", 12), ("03", 0)]
    engine.tables.create(table)
    (engine.tables.replace_partitions if table.parts else engine.tables.replace)(table, OLD)

    for batch in ("aaaaaaaa00000000", "aaaaaaaa00000000", "aaaaaaaa11111111"):  # the same, and one of more days
        engine.tables.overwrite(table, NEXT, batch)
        assert rows(engine) == after

    engine.tables.unmerge(table, "bbbbbbbb")
    assert rows(engine) == after
    engine.tables.unmerge(table, "aaaaaaaa")
    assert rows(engine) == before
    assert engine.tables.overwrite(table, "SELECT * FROM s.cut WHERE n > 99", "cccccccc00000000").rows == 0
    assert rows(engine) == (before if table.parts else [])


@pytest.mark.prove
def test_a_table_that_was_filled_anew_is_not_put_back(engine: SparkEngine) -> None:
    engine.tables.create(CUT)
    engine.tables.replace_partitions(CUT, OLD)
    engine.tables.overwrite(CUT, NEXT, "aaaaaaaa00000000")
    engine.tables.replace_partitions(CUT, "SELECT date'2026-01-05' AS day, 7 AS n", others=True)

    engine.tables.unmerge(CUT, "aaaaaaaa")

    assert rows(engine) == [("05", 7)]
