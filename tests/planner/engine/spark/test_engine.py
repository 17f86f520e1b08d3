"""What SparkEngine promises, on a real Spark: tables replaced by pointer, and views."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from urllib.parse import urlparse

import pytest

from mergeplan.planner.engine.protocol import Engine, Stands, ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import PartitionColumn, time_partitioning
from mergeplan.planner.engine.table import Table as AnyTable
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT
from tests.sampling import prove_rest

Table = partial(AnyTable, format=FORMAT or "parquet")
ORDERS = Table("mergeplan__shop.orders", (Column("id", "bigint"), Column("name", "string", "it's theirs")))
DAYS = "SELECT date_add(date'2024-01-01', cast(id AS int)) dt, cast(id AS int) v FROM range(10)"


def table_by_time(name: str, *columns: Column, by: str, form: str = "", unit: int = 86_400) -> AnyTable:
    return Table(name, columns, time_partitioning(columns, by, form, unit))


DAILY = table_by_time("mergeplan__shop.daily", Column("dt", "date"), Column("v", "int"), by="dt")


def days(first: int, after: int) -> Interval:
    return Interval(datetime(2024, 1, first, tzinfo=UTC), datetime(2024, 1, after, tzinfo=UTC))


def column(engine: SparkEngine, sql: str) -> list[object]:
    return [row[0] for row in engine.fetch(sql).rows]


def folder(engine: SparkEngine, table: str) -> Path:
    """Where all batches of a table lie."""
    (place,) = (str(row[1]) for row in engine.fetch(f"DESCRIBE TABLE EXTENDED {table}").rows if row[0] == "Location")
    return Path(urlparse(place.partition("/mergeplan-")[0]).path)


def test_it_speaks_every_verb_of_an_engine(engine: SparkEngine) -> None:
    port: Engine = engine

    assert port.catalog.objects("nowhere") == frozenset()


# Tables


def test_the_schema_of_a_query_is_told_without_running_it(engine: SparkEngine) -> None:
    before = engine.jobs()

    columns = engine.schema("SELECT cast(id AS decimal(10,2)) AS Price, raise_error('never run') AS e FROM range(3)")

    assert columns == (Column("price", "decimal(10,2)"), Column("e", "void"))
    assert engine.jobs() == before


def test_a_command_is_no_query(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)

    with pytest.raises(QueryError, match="Syntax error"):
        engine.schema(f"DROP TABLE {ORDERS.name}")
    assert engine.catalog.objects("mergeplan__shop") == {"orders"}


def test_a_table_that_exists_is_left_as_it_is(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")

    engine.tables.create(ORDERS)

    assert engine.fetch(f"SELECT * FROM {ORDERS.name}").rows == ((1, "a"),)


def test_a_tables_folder_has_the_rights_of_the_umask_like_those_of_its_batches(
    engine: SparkEngine, tmp_path: Path
) -> None:
    first, second = (AnyTable(f"mergeplan__rights.t{n}", ORDERS.columns) for n in (1, 2))
    engine.tables.create(first)
    folder(engine, first.name).parent.chmod(0o700)
    (tmp_path / "made").mkdir()

    engine.tables.create(second)

    assert folder(engine, second.name).stat().st_mode == (tmp_path / "made").stat().st_mode


def test_rows_are_matched_to_columns_by_name(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)

    written = engine.tables.replace(ORDERS, "SELECT 'b' AS Name, id FROM range(3);")

    assert written.rows == 3
    assert engine.fetch(f"SELECT * FROM {ORDERS.name} ORDER BY id", limit=1).rows == ((0, "b"),)


@pytest.mark.parametrize(
    ("sql", "said"),
    [("SELECT 1 id", "lacks column 'name'"), ("SELECT 1 id, '' name, 2 x", "has an unexpected column 'x'")],
)
def test_a_query_with_other_columns_than_its_table_is_refused(engine: SparkEngine, sql: str, said: str) -> None:
    engine.tables.create(ORDERS)

    with pytest.raises(QueryError, match=said):
        engine.tables.replace(ORDERS, sql)


@pytest.mark.prove
def test_replacing_by_no_rows_leaves_an_empty_table(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")

    written = engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name WHERE false")

    assert written.rows == 0
    assert engine.fetch(f"SELECT * FROM {ORDERS.name}").rows == ()


def test_a_query_that_fails_midway_leaves_the_old_rows(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")

    with pytest.raises(QueryError, match=r"^row 90 is bad") as caught:
        engine.tables.replace(ORDERS, "SELECT id, if(id = 90, raise_error('row 90 is bad'), 'b') name FROM range(100)")

    assert caught.value.condition == "USER_RAISED_EXCEPTION"
    assert engine.fetch(f"SELECT * FROM {ORDERS.name}").rows == ((1, "a"),)


@pytest.mark.parametrize("table", prove_rest([ORDERS, DAILY]), ids=["unpartitioned", "partitioned"])
def test_a_reader_opened_before_a_replace_still_reads(engine: SparkEngine, table: AnyTable) -> None:
    def write() -> None:
        if table is DAILY:
            engine.tables.replace_interval(DAILY, DAYS, days(1, 10))
        else:
            engine.tables.replace(ORDERS, "SELECT /*+ REPARTITION(2) */ id, 'a' name FROM range(9)")

    engine.tables.create(table)
    write()
    reader = engine._sessions.current.spark.table(table.name).coalesce(3).toLocalIterator()
    next(reader)

    write()

    assert len(list(reader)) == 8
    assert column(engine, f"SELECT count(*) FROM {table.name}") == [9]


def test_a_dropped_table_leaves_no_files(engine: SparkEngine) -> None:
    for table in (ORDERS, DAILY):
        engine.tables.create(table)
    for _ in range(2):
        engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")
        engine.tables.replace_interval(DAILY, DAYS, days(1, 3))
    folders = [folder(engine, table.name) for table in (ORDERS, DAILY)]
    assert all(len(list(folder.iterdir())) >= 2 for folder in folders)

    for table in (ORDERS, DAILY):
        engine.tables.drop(table.name)

    assert not [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert FORMAT == "iceberg" or not any(folder.exists() for folder in folders)  # which leaves empty folders
    engine.tables.drop(ORDERS.name)
    engine.catalog.drop_schema_if_empty("mergeplan__shop")
    assert column(engine, "SHOW SCHEMAS") == ["default"]


# Intervals


def test_an_interval_replaces_its_own_days_only(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, DAYS, days(1, 6))

    written = engine.tables.replace_interval(DAILY, DAYS.replace("cast(id AS int) v", "-1 v"), days(2, 4))

    assert (written.rows, written.partitions) == (2, ("2024-01-02", "2024-01-03"))
    assert column(engine, f"SELECT v FROM {DAILY.name} ORDER BY dt") == [0, -1, -1, 3, 4]


def test_days_of_the_interval_without_rows_end_empty(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, DAYS, days(1, 6))

    engine.tables.replace_interval(DAILY, f"{DAYS} WHERE id = 2", days(2, 5))
    assert column(engine, f"SELECT v FROM {DAILY.name} ORDER BY dt") == [0, 2, 4]

    assert engine.tables.replace_interval(DAILY, f"{DAYS} WHERE false", days(1, 9)).rows == 0
    assert column(engine, f"SELECT v FROM {DAILY.name}") == []


def test_rows_outside_the_interval_or_without_a_time_are_left_out(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)

    written = engine.tables.replace_interval(DAILY, f"{DAYS} UNION ALL SELECT null, 99", days(3, 5))

    assert written.rows == 2
    assert column(engine, f"SELECT dt FROM {DAILY.name} ORDER BY dt") == [date(2024, 1, 3), date(2024, 1, 4)]


def test_an_interval_that_fails_midway_leaves_the_old_days(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, DAYS, days(1, 6))

    with pytest.raises(QueryError, match="no fifth day"):
        engine.tables.replace_interval(
            DAILY, f"SELECT dt, if(v = 4, raise_error('no fifth day'), 7) v FROM ({DAYS})", days(1, 6)
        )

    assert column(engine, f"SELECT v FROM {DAILY.name} ORDER BY dt") == [0, 1, 2, 3, 4]


def test_intervals_of_one_table_are_written_at_once(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda day: engine.tables.replace_interval(DAILY, DAYS, days(day, day + 2)), (1, 3, 5, 7)))

    assert column(engine, f"SELECT v FROM {DAILY.name} ORDER BY dt") == list(range(8))


def test_timestamps_are_cut_by_the_hour_in_a_hidden_column(engine: SparkEngine) -> None:
    hourly = table_by_time("mergeplan__shop.hourly", Column("at", "timestamp"), by="at", unit=3_600)
    sql = "SELECT timestampadd(MINUTE, cast(20 * id AS int), timestamp'2024-01-01') at FROM range(9)"
    engine.tables.create(hourly)
    engine.tables.replace_interval(hourly, sql, days(1, 2))

    one = Interval(datetime(2024, 1, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 2, tzinfo=UTC))
    written = engine.tables.replace_interval(hourly, f"{sql} LIMIT 4", one)

    assert written.partitions == ("2024-01-01 01:00:00",)
    assert column(engine, f"SELECT hour(at) FROM {hourly.name} ORDER BY at") == [0, 0, 0, 1, 2, 2, 2]
    assert column(engine, f"SELECT min(at) FROM {hourly.name}") == [datetime(2024, 1, 1, tzinfo=UTC)]


def test_hours_between_quarters_are_cut_where_they_start(engine: SparkEngine) -> None:
    table = table_by_time("mergeplan__shop.quarters", Column("at", "timestamp_ntz"), by="at", unit=900)
    engine.tables.create(table)

    written = engine.tables.replace_interval(table, "SELECT timestamp_ntz'2024-01-01 10:44:59.9' at", days(1, 2))

    assert written.partitions == ("2024-01-01 10:30:00",)


@pytest.mark.parametrize(
    ("kind", "form", "literal"),
    prove_rest(
        [
            ("string", "yyyy-MM-dd", "'2024-01-02'"),
            ("string", "dd.MM.yyyy HH:mm", "'02.01.2024 23:59'"),
            ("int", "yyyyMMdd", "20240102"),
            ("timestamp", "", "timestamp'2024-01-02 23:59:59'"),
            ("date", "", "date'2024-01-02'"),
        ],
        2,
    ),
)
def test_every_sort_of_time_column_is_cut_by_the_day(engine: SparkEngine, kind: str, form: str, literal: str) -> None:
    table = table_by_time("mergeplan__shop.texts", Column("ds", kind), by="ds", form=form)
    engine.tables.create(table)

    written = engine.tables.replace_interval(table, f"SELECT {literal} AS ds UNION ALL SELECT null", days(2, 3))

    assert (written.rows, written.partitions) == (1, ("2024-01-02",))


def test_an_interval_that_cuts_a_day_is_a_defect(engine: SparkEngine) -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)

    with pytest.raises(ValueError, match="does not start a unit"):
        engine.tables.replace_interval(DAILY, DAYS, Interval(noon, datetime(2024, 1, 2, tzinfo=UTC)))


# Seeds


def test_the_cells_of_a_seed_are_cast(engine: SparkEngine) -> None:
    columns = (Column("a", "int"), Column("b", "decimal(5,2)"), Column("c", "date"), Column("d", "string"))
    table = Table("mergeplan__shop.seed", columns)
    engine.tables.create(table)

    written = engine.tables.load(table, [("1", "2.5", "2024-01-01", "it's"), (None, None, None, None)])

    assert written.rows == 2
    assert set(engine.fetch(f"SELECT * FROM {table.name}").rows) == {
        (1, Decimal("2.50"), date(2024, 1, 1), "it's"),
        (None, None, None, None),
    }


def test_a_cell_that_cannot_be_cast_is_named(engine: SparkEngine) -> None:
    table = Table("mergeplan__shop.seed", (Column("a", "int"), Column("day", "date")))
    engine.tables.create(table)
    engine.tables.load(table, [("1", "2024-01-01")])

    with pytest.raises(QueryError, match=r"^row 2, column 'day': 'tomorrow' is not a value of type date\.$"):
        engine.tables.load(table, [("1", None), ("2", "tomorrow"), ("x", None)])
    assert column(engine, f"SELECT a FROM {table.name}") == [1]

    assert engine.tables.load(table, []).rows == 0


def test_rows_of_a_new_table_lie_in_it_and_the_next_take_their_place(engine: SparkEngine) -> None:
    assert engine.tables.create(ORDERS)
    assert not engine.tables.create(ORDERS)

    first = engine.tables.replace(ORDERS, "SELECT id, 'a' name FROM range(3)", is_fresh=True)
    reader = engine.fetch(f"SELECT count(*) FROM {ORDERS.name}").rows
    engine.tables.replace(ORDERS, "SELECT 7 id, 'b' name")
    again = engine.fetch(f"SELECT * FROM {ORDERS.name}").rows
    engine.tables.merge(ORDERS, lambda base: f"SELECT * FROM {base} UNION ALL SELECT 8, 'c'", "0123456789abcdef")

    assert (first.rows, reader, again) == (3, ((3,),), ((7, "b"),))
    assert engine.fetch(f"SELECT id FROM {ORDERS.name} ORDER BY 1").rows == ((7,), (8,))


def test_whoever_takes_a_table_for_new_that_is_not_replaces_its_rows(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")

    engine.tables.replace(ORDERS, "SELECT 2 id, 'b' name", is_fresh=True)

    assert engine.fetch(f"SELECT id FROM {ORDERS.name}").rows == ((2,),)


def test_rows_for_a_new_table_never_go_into_files_that_it_took_over(engine: SparkEngine) -> None:
    other = replace(ORDERS, name="s.other")
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name", is_fresh=True)
    engine.tables.take_over(other, ORDERS.name, ())

    engine.tables.replace(other, "SELECT 2 id, 'b' name", is_fresh=True)

    assert engine.fetch(f"SELECT id FROM {ORDERS.name}").rows == ((1,),)
    assert engine.fetch(f"SELECT id FROM {other.name}").rows == ((2,),)


def test_a_merge_into_rows_that_lie_in_the_table_itself_can_be_taken_back(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name", is_fresh=True)

    for _ in range(2):  # repeated, it starts from what there was before
        merge = "SELECT * FROM {0} UNION ALL SELECT 2, 'b'"
        engine.tables.merge(ORDERS, merge.format, "0123456789abcdef")
        assert engine.fetch(f"SELECT id FROM {ORDERS.name} ORDER BY 1").rows == ((1,), (2,))
    engine.tables.unmerge(ORDERS, "0123456789abcdef")

    assert engine.fetch(f"SELECT id FROM {ORDERS.name}").rows == ((1,),)


def test_a_merge_of_texts_of_a_length_can_be_repeated(engine: SparkEngine) -> None:
    table = replace(ORDERS, columns=(Column("id", "bigint"), Column("name", "struct<a:varchar(3),b:char(2)>")))
    engine.tables.create(table)
    engine.tables.replace(table, "SELECT 1 id, named_struct('a', 'x', 'b', 'y') name")

    for _ in range(2):
        merge = "SELECT * FROM {0} UNION ALL SELECT 2, named_struct('a', 'z', 'b', 'z')"
        engine.tables.merge(table, merge.format, "0123456789abcdef")

    assert column(engine, f"SELECT name.a || name.b FROM {ORDERS.name} ORDER BY 1") == ["xy ", "zz "]


@pytest.mark.parametrize(
    "table",
    prove_rest(
        [
            Table(
                "s.t",
                (Column("id", "bigint"), Column("c", "string")),
                parts=(PartitionColumn("id", "bigint", "id", hidden=False),),
            ),
            Table("s.t", (Column("id", "bigint"), Column("c", "char(4)"))),
            Table("s.t", (Column("id", "bigint"), Column("c", "string")), options=(("compression", "zstd"),)),
        ]
    ),
    ids=["partitions", "text of a length", "options"],
)
def test_rows_of_a_new_table_are_the_same_as_rows_that_replace_others(engine: SparkEngine, table: AnyTable) -> None:
    rows = []
    for untouched in (True, False):
        engine.tables.create(table)
        engine.tables.replace(table, "SELECT id, 'ab' c FROM range(2)", is_fresh=untouched)
        rows.append(engine.fetch("SELECT id, c, length(c) FROM s.t ORDER BY 1").rows)
        files = {Path(row[0]).name for row in engine.fetch("SELECT DISTINCT input_file_name() FROM s.t").rows}
        assert FORMAT == "iceberg" or all(("zstd" in file) == bool(table.options) for file in files)
        engine.tables.drop("s.t")

    assert rows[0] == rows[1] != ()


# Views


def test_a_view_is_created_with_its_schema_and_skipped_when_it_is_so_already(engine: SparkEngine) -> None:
    sql = "SELECT 1 AS a,\n  'it\\'s' AS b, 'token=x' AS url"

    assert engine.catalog.swap_view(ViewText("shop.v", sql, "what it's for"))
    assert not engine.catalog.swap_view(ViewText("shop.v", f"{sql}\n", "what it's for"))

    assert engine.fetch("SELECT * FROM shop.v").rows == ((1, "it's", "token=x"),)


def test_a_view_follows_its_text_and_its_comment(engine: SparkEngine) -> None:
    engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a"))

    assert engine.catalog.swap_view(ViewText("shop.v", "SELECT 'x' AS b, 2 AS a"))
    assert engine.catalog.swap_view(ViewText("shop.v", "SELECT 'x' AS b, 2 AS a", "new"))
    assert not engine.catalog.swap_view(ViewText("shop.v", "SELECT 'x' AS b, 2 AS a", "new"))

    assert engine.fetch("SELECT * FROM shop.v").rows == (("x", 2),)
    assert ("Comment", "new", "") in engine.fetch("DESCRIBE TABLE EXTENDED shop.v").rows


@pytest.mark.parametrize("stands", Stands)
@pytest.mark.parametrize("there", ["", "SELECT 1 AS a", "SELECT 2 AS a"])
def test_a_view_is_right_whatever_its_caller_takes_to_stand_there(
    engine: SparkEngine, there: str, stands: Stands
) -> None:
    if there:
        engine.catalog.swap_view(ViewText("shop.v", there, "new"))

    assert engine.catalog.swap_view(ViewText("shop.v", "SELECT 2 AS a", "new", stands=stands)) or "2" in there

    assert engine.fetch("SELECT * FROM shop.v").rows == ((2,),)
    assert ("Comment", "new", "") in engine.fetch("DESCRIBE TABLE EXTENDED shop.v").rows


@pytest.mark.parametrize("stands", [Stands.UNKNOWN, Stands.ALL_BUT_QUERY])
def test_a_swapped_view_keeps_what_others_wrote_of_it(engine: SparkEngine, stands: Stands) -> None:
    engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a", properties=[("team", "a")]))
    engine.fetch("ALTER VIEW shop.v SET TBLPROPERTIES ('comment' = 'by hand', 'retention' = '7')")

    engine.catalog.swap_view(ViewText("shop.v", "SELECT 2 AS a", "", (), [("team", "b")], stands, ours=("",)))

    engine.catalog.swap_view(ViewText("shop.v", "SELECT 2 AS a", properties=[("team", "b")], ours=("",)))
    kept = {row[0]: row[1] for row in engine.fetch("SHOW TBLPROPERTIES shop.v").rows}
    assert (kept["retention"], kept["team"]) == ("7", "b")
    assert ("Comment", "by hand", "") in engine.fetch("DESCRIBE TABLE EXTENDED shop.v").rows


def test_a_comment_of_ours_goes_with_the_description(engine: SparkEngine) -> None:
    engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a", "old"))

    assert engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a", ours=("old", "")))

    assert not {row[1] for row in engine.fetch("DESCRIBE TABLE EXTENDED shop.v").rows if row[0] == "Comment"} - {""}


def test_swapping_views_and_altering_partitions_runs_no_job_and_counting_does(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")
    before = engine.jobs()

    engine.catalog.swap_view(ViewText("shop.orders", f"SELECT id FROM {ORDERS.name}"))
    engine.catalog.swap_view(ViewText("shop.orders", f"SELECT name FROM {ORDERS.name}"))
    engine.catalog.drop_view("shop.gone")
    assert engine.jobs() == before

    engine.fetch("SELECT count(*) FROM shop.orders")
    assert engine.jobs() > before


def test_a_table_is_never_replaced_by_a_view(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)

    for stands in Stands:
        with pytest.raises(QueryError, match="is a table, and a view of that name is wanted"):
            engine.catalog.swap_view(ViewText(ORDERS.name, "SELECT 1 AS a", stands=stands))
    assert engine.catalog.objects("mergeplan__shop") == {"orders"}


def test_a_schema_is_dropped_when_nothing_is_left_in_it(engine: SparkEngine) -> None:
    engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a"))
    engine.catalog.drop_schema_if_empty("shop")
    assert engine.catalog.objects("shop") == {"v"}

    engine.tables.drop("shop.v")
    engine.catalog.drop_schema_if_empty("shop")

    assert engine.catalog.objects("shop") == frozenset()
    assert column(engine, "SHOW SCHEMAS") == ["default"]
