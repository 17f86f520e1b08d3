"""Parquet and ORC tables that are made of the same files: what is said without reading a row, and what is not."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mergeplan.planner.checks.diff.table_diff import are_same_files
from mergeplan.planner.engine.protocol import Connection, Server, ViewText
from mergeplan.planner.engine.spark.catalog import session_conf
from mergeplan.planner.engine.spark.connect.connect_session import ConnectSession
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT
from tests.sampling import prove_rest

pytestmark = pytest.mark.skipif(bool(FORMAT), reason="`test_files_by_format.py` is about other formats")

COLUMNS = (Column("day", "date"), Column("id", "int"), Column("name", "string"))
NAMES = ("day", "id", "name")
SEEDS = 6 if "MERGEPLAN_CASES" in os.environ else 1  # more by `make prove`
WHOLE = Table("s.whole", COLUMNS)
BY_DAY = Table("s.daily", COLUMNS, time_partitioning(COLUMNS, "day", "", 86_400))
HIDDEN = Table("s.hidden", COLUMNS, time_partitioning(COLUMNS, "day", "", 86_400, use_hidden_column=True))
ORC = Table("s.orc", COLUMNS, format="orc")
ROWS = "SELECT date_add(date'2026-01-01', cast(id AS int)) day, cast(id AS int) id, 'a' name FROM range(5)"


def days(first: int, after: int) -> Interval:
    return Interval(datetime(2026, 1, first, tzinfo=UTC), datetime(2026, 1, after, tzinfo=UTC))


def fill(engine: SparkEngine, table: Table, sql: str = ROWS) -> None:
    engine.tables.create(table)
    if table.partitioning:
        engine.tables.replace_interval(table, sql, days(1, 6))
    else:
        engine.tables.replace(table, sql)


def take_over(engine: SparkEngine, table: Table, *, rows: Iterable[Interval] = (days(1, 6),)) -> Table:
    """A table that was filled, and then another one over its files."""
    fill(engine, table)
    other = replace(table, name="s.other")
    engine.tables.take_over(other, table.name, tuple(rows))
    return other


def same(engine: SparkEngine, one: str, other: str = "s.other", columns: tuple[str, ...] = NAMES) -> bool:
    return are_same_files(engine, (one, other), columns)


def one_day(engine: SparkEngine, table: Table, id: int, name: str = "b") -> None:
    rows = f"SELECT date_add(date'2026-01-01', {id}) day, {id} id, '{name}' name"
    engine.tables.replace_interval(table, rows, days(id + 1, id + 2))


@pytest.mark.parametrize("table", prove_rest([WHOLE, BY_DAY, HIDDEN, ORC], 3), ids=["whole", "by day", "hidden", "orc"])
def test_a_table_over_anothers_files_is_known_to_be_so_without_a_job(engine: SparkEngine, table: Table) -> None:
    other = take_over(engine, table)
    before = engine.jobs()

    assert same(engine, table.name)

    assert engine.jobs() == before
    if table.partitioning:
        one_day(engine, other, 3)
    else:
        engine.tables.replace(other, ROWS)
    assert not same(engine, table.name)


@pytest.mark.prove
def test_over_spark_connect_the_files_are_the_same_too(engine: SparkEngine) -> None:
    other = take_over(engine, HIDDEN)
    session = ConnectSession(Server(engine._shared.server().url, tuple(session_conf(Connection()).items())))
    try:
        files = SparkEngine(session).tables.files(other.name)
    finally:
        session.close()

    assert files is not None
    assert files == engine.tables.files(HIDDEN.name)


def test_an_interval_is_compared_by_its_own_partitions(engine: SparkEngine) -> None:
    other = take_over(engine, BY_DAY)
    one_day(engine, other, 3)

    tables = (BY_DAY.name, other.name)
    assert are_same_files(engine, tables, NAMES, "day < date'2026-01-04'")
    assert not are_same_files(engine, tables, NAMES, "day < date'2026-01-05'")
    assert are_same_files(engine, tables, NAMES, "day = date'2026-01-05'")


@pytest.mark.prove
def test_days_that_one_table_lacks_or_that_became_empty_are_not_the_same(engine: SparkEngine) -> None:
    other = take_over(engine, HIDDEN, rows=[days(1, 4)])
    assert not same(engine, HIDDEN.name)

    engine.tables.drop(other.name)
    engine.tables.take_over(other, HIDDEN.name, (days(1, 6),))
    assert same(engine, HIDDEN.name)
    engine.tables.replace_interval(other, f"{ROWS} WHERE false", days(2, 3))
    assert not same(engine, HIDDEN.name)


def test_a_column_that_the_files_lack_leaves_the_others_the_same(engine: SparkEngine) -> None:
    fill(engine, BY_DAY)
    wider = replace(BY_DAY, name="s.other", columns=(*COLUMNS, Column("more", "int")))
    engine.tables.take_over(wider, BY_DAY.name, (days(1, 6),))

    assert same(engine, BY_DAY.name)
    assert not same(engine, BY_DAY.name, columns=(*NAMES, "more"))


@pytest.mark.parametrize(
    "declared",
    prove_rest(["id int, name string, more int DEFAULT 7", "id bigint, name string, more int", "id int, name char(9)"]),
)
def test_the_same_files_under_another_schema_are_read(engine: SparkEngine, declared: str) -> None:
    """A default is what Spark reads where files lack the column; a CHAR is filled up with blanks."""
    engine.fetch("CREATE SCHEMA s")
    engine.fetch("CREATE TABLE s.one (id int, name string, more int) USING parquet")
    engine.fetch("INSERT INTO s.one (id, name) VALUES (1, 'a')")
    place = place_of(engine, "s.one")
    engine.fetch(f"CREATE TABLE s.other ({declared}) USING parquet LOCATION '{place}'")

    assert not same(engine, "s.one", columns=("id", "name", "more"))
    assert same(engine, "s.one", "s.one", ("id", "name", "more"))


@pytest.mark.prove
def test_two_tables_with_other_defaults_for_one_column_are_read(engine: SparkEngine) -> None:
    fill(engine, WHOLE)
    for name, default in (("s.one", 7), ("s.other", 8)):
        engine.tables.take_over(replace(WHOLE, name=name), WHOLE.name, ())
        engine.fetch(f"ALTER TABLE {name} ADD COLUMNS (more int DEFAULT {default})")

    assert not same(engine, "s.one", columns=("more",))
    assert same(engine, "s.one", columns=NAMES)
    assert engine.fetch("SELECT DISTINCT a.more, b.more FROM s.one a, s.other b").rows == ((7, 8),)


@pytest.mark.parametrize(
    "options",
    ["'pathGlobFilter' = '*x*'", "'my.token' = 'a'", "'mergeSchema' = 'true'"],
    ids=["glob", "secret", "merge"],
)
def test_other_options_of_reading_are_other_rows(engine: SparkEngine, options: str) -> None:
    fill(engine, WHOLE)
    place, columns = place_of(engine, WHOLE.name), "day date, id int, name string"
    engine.fetch(f"CREATE TABLE s.other ({columns}) USING parquet OPTIONS ({options}) LOCATION '{place}'")

    assert not same(engine, WHOLE.name)


def test_a_table_names_the_state_that_made_it(engine: SparkEngine) -> None:
    take_over(engine, replace(BY_DAY, owner="0123456789abcdef"))
    engine.catalog.swap_view(ViewText("s.view", "SELECT 1 AS one"))

    owners = [engine.catalog.owner(name) for name in ("s.daily", "s.other", "s.view", "s.gone", "gone.table")]
    assert owners == ["0123456789abcdef", "0123456789abcdef", "", None, None]


def test_comments_are_no_difference(engine: SparkEngine) -> None:
    other = take_over(engine, BY_DAY)
    engine.catalog.comment_columns(other.name, (Column("name", "string", "who"),))

    assert same(engine, BY_DAY.name)


def test_partitions_that_others_laid_out_are_read(engine: SparkEngine) -> None:
    """The catalog may have any value for any folder."""
    engine.fetch("CREATE SCHEMA s")
    for name in ("s.one", "s.other"):
        engine.fetch(f"CREATE TABLE {name} (id int, day date) USING parquet PARTITIONED BY (day)")
    engine.fetch("INSERT INTO s.one VALUES (1, date'2026-01-01')")
    place = place_of(engine, "s.one")
    engine.fetch(f"ALTER TABLE s.other ADD PARTITION (day = '2026-01-02') LOCATION '{place}/day=2026-01-01'")

    assert not same(engine, "s.one", columns=("id",))
    assert not same(engine, "s.one", "s.one", ("id",))


def test_views_other_formats_and_what_is_not_there_are_unknown(engine: SparkEngine) -> None:
    fill(engine, WHOLE)
    engine.catalog.swap_view(ViewText("s.view", f"SELECT * FROM {WHOLE.name}"))
    engine.fetch("CREATE TABLE s.text (name string) USING csv")

    for name in ("s.view", "s.text", "s.nothing", "nowhere.t"):
        assert engine.tables.files(name) is None
        assert not same(engine, name, name)


@pytest.mark.prove
def test_a_table_that_is_cached_is_read(engine: SparkEngine) -> None:
    """Of a cached table Spark names no files."""
    take_over(engine, BY_DAY)
    for name in ("s.daily", "s.other"):
        engine.fetch(f"CACHE TABLE {name}")

    assert not same(engine, BY_DAY.name)

    for name in ("s.daily", "s.other"):  # tables of later tests have these names too
        engine.fetch(f"UNCACHE TABLE {name}")


def test_a_file_that_came_since_spark_looked_last_is_in_both(engine: SparkEngine) -> None:
    other = take_over(engine, BY_DAY)
    assert same(engine, BY_DAY.name)
    file = next(Path(unquote(urlparse(place_of(engine, BY_DAY.name)).path)).rglob("day=2026-01-02/*.parquet"))
    file.with_name("part-more.parquet").write_bytes(file.read_bytes())

    assert same(engine, BY_DAY.name)
    assert len(engine.fetch(f"SELECT * FROM {other.name}").rows) == 6


@pytest.mark.prove
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(
    "table",
    [
        pytest.param(WHOLE, id="whole", marks=pytest.mark.prove),
        pytest.param(BY_DAY, id="by day"),
        pytest.param(HIDDEN, id="hidden", marks=pytest.mark.prove),
    ],
)
def test_whatever_is_done_to_two_tables_the_same_files_hold_the_same_rows(
    engine: SparkEngine, table: Table, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311  # reproducible
    pair, known = [table, take_over(engine, table)], 0
    for _ in range(8):
        edit_table(engine, rng, pair[rng.randrange(2)], pair)
        said = same(engine, table.name)
        first, second = (engine.fetch(f"SELECT {', '.join(NAMES)} FROM {side.name} ORDER BY ALL").rows for side in pair)
        assert not said or first == second
        known += said
    assert known or seed


def edit_table(engine: SparkEngine, rng: random.Random, table: Table, pair: list[Table]) -> None:
    """One edit of a table, or the other one made over its files once more."""
    id = rng.randrange(5)
    match rng.choice(["one day", "all", "added", "empty", "taken over", "taken over", "column"]):
        case "one day" if table.partitioning:
            one_day(engine, table, id, rng.choice("ab"))
        case "one day" | "all":
            fill(engine, table, ROWS.replace("'a'", f"'{rng.choice('ab')}'"))
        case "empty" if table.partitioning:
            engine.tables.replace_interval(table, f"{ROWS} WHERE false", days(id + 1, id + 2))
        case "added":
            engine.fetch(f"INSERT INTO {table.name} ({', '.join(NAMES)}) {insert_sql(table, id)}")
        case "column":
            engine.fetch(f"ALTER TABLE {table.name} ADD COLUMNS (c{rng.randrange(10**9)} int DEFAULT {id})")
        case "taken over":
            engine.tables.drop(pair[1].name)
            engine.tables.take_over(pair[1], pair[0].name, (days(1, 6),))


def insert_sql(table: Table, id: int) -> str:
    return f"SELECT date_add(date'2026-01-01', {id}), {id}, 'c'"


def place_of(engine: SparkEngine, name: str) -> str:
    return str(dict(row[:2] for row in engine.fetch(f"DESCRIBE TABLE EXTENDED {name}").rows)["Location"])
