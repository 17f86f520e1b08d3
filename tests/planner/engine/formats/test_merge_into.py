"""Merges by MERGE INTO: they leave what the SELECT of all rows would, and files without a changed row as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.planner.engine.protocol import MergeInto
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import PartitionColumn, Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.tables.merge.delete_insert import delete_insert, delete_insert_into
from mergeplan.planner.tables.merge.relations import MergeBatch
from mergeplan.planner.tables.merge.unique_key import upsert_into, upsert_query
from tests.conftest import FORMAT
from tests.planner.builders import days
from tests.planner.shop import NOW

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]

COLUMNS = (Column("id", "int"), Column("na`me", "string"), Column("n", "int"))
BY_N = PartitionColumn("n", "int", "`n`", hidden=False)
HIDDEN = PartitionColumn("third", "int", "pmod(`n`, 3)", hidden=True)
PLAIN = Table("s.keyed", COLUMNS, format=FORMAT)
OLD = "(1, 'a', 10), (2, 'b', 20), (CAST(NULL AS INT), 'x', 1)"
NEW = "(1, 'A', 5), (3, 'C', 7), (CAST(NULL AS INT), 'y', 2)"
DELETES = (
    "WHEN MATCHED AND source.n > 100 THEN DELETE WHEN MATCHED AND source.n < 9 THEN UPDATE SET target.n = 0, "
    "target.`na``me` = concat(source.`na``me`, target.`na``me`) WHEN MATCHED THEN DELETE"
)
CASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "all": ("", "", ("id",)),
    "star": ("WHEN MATCHED THEN UPDATE SET *", "", ("id",)),
    "all but one": ("WHEN MATCHED THEN UPDATE SET * EXCEPT (`na``me`)", "", ("id",)),
    "set": ("WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n", "", ("id",)),
    "delete": (DELETES, "", ("id",)),
    "no when holds": ("WHEN MATCHED AND source.n > 100 THEN UPDATE SET *", "", ("id",)),
    "filter": ("", "target.n > 10 AND @start_ds = '2026-01-01'", ("id",)),
    "expression": ("", "", ("coalesce(ID, -1)",)),
    "two": ("", "", ("id", "upper(`na``me`)")),
}


def batch_of(case: str, base: str, rows: str = NEW) -> MergeBatch:
    query = f"SELECT id, `na``me`, n FROM VALUES {rows} AS t(id, `na``me`, n)"
    return MergeBatch("shop.t", query, base, COLUMNS, CASES[case][2])


def merge_rule(case: str, rows: str = NEW) -> MergeInto:
    when, only, _ = CASES[case]
    rule = upsert_into(batch_of(case, "", rows), when, only, dates(days(1, 1), NOW))
    assert rule is not None
    return rule


def fill(engine: SparkEngine, table: Table) -> list[str]:
    """The table with the old rows; the files that it has."""
    engine.tables.drop(table.name)
    engine.tables.create(table)
    engine.tables.replace(table, f"SELECT * FROM VALUES {OLD} AS t(id, `na``me`, n)")
    return files(engine, table)


def files(engine: SparkEngine, table: Table) -> list[str]:
    path = "_metadata.file_path" if FORMAT == "delta" else "_file"
    return [str(row[0]) for row in engine.fetch(f"SELECT DISTINCT {path} FROM {table.name}").rows]


def refuse_base(base: str) -> str:
    raise AssertionError(f"all rows of {base} are written again")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("parts", [(), (BY_N,), (HIDDEN,)], ids=["plain", "by a column", "by a hidden one"])
def test_a_merge_leaves_what_the_select_of_all_rows_says(
    engine: SparkEngine, case: str, parts: tuple[PartitionColumn, ...]
) -> None:
    table, (when, only, _) = replace(PLAIN, parts=parts, listed=bool(parts)), CASES[case]
    fill(engine, table)

    def select(base: str) -> str:
        return upsert_query(batch_of(case, base), when, only, dates(days(1, 1), NOW))

    wanted = engine.fetch(f"SELECT * FROM ({select(table.name)}) ORDER BY ALL").rows
    whole = bool(when) and parts == (HIDDEN,)  # nobody knows the hidden column of a row that WHENs made
    done = engine.tables.merge(table, select if whole else refuse_base, "aaaaaaaa00000000", merge_rule(case))

    assert engine.fetch(f"SELECT id, `na``me`, n FROM {table.name} ORDER BY ALL").rows == wanted
    assert whole or done.rows == 3


@pytest.mark.parametrize("parts", [(), (BY_N,)], ids=["plain", "by a column"])
def test_rows_of_a_key_are_deleted_and_inserted_in_one_statement(
    engine: SparkEngine, parts: tuple[PartitionColumn, ...]
) -> None:
    table = replace(PLAIN, parts=parts, listed=bool(parts))
    fill(engine, table)
    batch = batch_of("all", table.name, "(1, 'A', 5), (1, 'A', 5), (3, 'C', 7)")
    wanted = engine.fetch(f"SELECT * FROM ({delete_insert(batch)}) ORDER BY ALL").rows

    engine.tables.merge(table, refuse_base, "aaaaaaaa00000000", delete_insert_into(batch))

    assert engine.fetch(f"SELECT id, `na``me`, n FROM {table.name} ORDER BY ALL").rows == wanted
    assert len(wanted) == 5


def test_files_without_a_changed_row_stay(engine: SparkEngine) -> None:
    table = replace(PLAIN, parts=(BY_N,), listed=True)
    before = fill(engine, table)

    engine.tables.merge(table, refuse_base, "aaaaaaaa00000000", merge_rule("all", "(2, 'B', 20)"))

    assert len(set(before) & set(files(engine, table))) == 2


def test_a_merge_is_known_by_its_batch_repeated_from_before_it_and_taken_back(engine: SparkEngine) -> None:
    fill(engine, PLAIN)
    add, (when, only, _) = "WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n", CASES["set"]
    assert add == when
    for _ in range(2):  # the second one repeats it: from the rows before, all of them
        engine.tables.merge(
            PLAIN,
            lambda base: upsert_query(batch_of("set", base), when, only, {}),
            "aaaaaaaa00000000",
            merge_rule("set"),
        )
        assert engine.fetch(f"SELECT n FROM {PLAIN.name} WHERE id = 1").rows == ((15,),)

    engine.tables.unmerge(PLAIN, "aaaaaaaa")
    assert engine.fetch(f"SELECT n FROM {PLAIN.name} ORDER BY n").rows == ((1,), (10,), (20,))


def test_two_rows_of_one_key_are_refused_and_nothing_is_written(engine: SparkEngine) -> None:
    fill(engine, PLAIN)
    with pytest.raises(QueryError, match="returns more than one row for the key"):
        engine.tables.merge(PLAIN, refuse_base, "aaaaaaaa00000000", merge_rule("all", "(7, 'A', 5), (7, 'B', 6)"))

    assert engine.fetch(f"SELECT count(*) FROM {PLAIN.name}").rows == ((3,),)


def test_a_model_with_settings_of_its_own_is_merged_in_its_session(engine: SparkEngine) -> None:
    fill(engine, PLAIN)
    with engine.separate_session(("CREATE TEMPORARY VIEW seen AS SELECT 2 id, 'z' `na``me`, 9 n",), ()):
        into = replace(merge_rule("all"), rows="SELECT * FROM seen")
        engine.tables.merge(PLAIN, refuse_base, "aaaaaaaa00000000", into)

    assert engine.fetch(f"SELECT n FROM {PLAIN.name} WHERE id = 2").rows == ((9,),)


@pytest.mark.parametrize("rows", ["SELECT 1 id, uuid() `na``me`, 1 n", "SELECT 1 id, 'a' `na``me`, 1 n WHERE false"])
def test_rows_may_be_made_anew_each_time_or_be_none(engine: SparkEngine, rows: str) -> None:
    fill(engine, PLAIN)
    done = engine.tables.merge(PLAIN, refuse_base, "aaaaaaaa00000000", replace(merge_rule("all"), rows=rows))

    assert engine.fetch(f"SELECT count(*) FROM {PLAIN.name}").rows == ((3,),)
    assert engine.fetch(f"SELECT count(*) FROM {PLAIN.name} WHERE n = 1 AND id = 1").rows == ((done.rows,),)
