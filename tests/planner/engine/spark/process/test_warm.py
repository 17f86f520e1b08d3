"""A warm Spark: several processes share one embedded catalog, each counts its own jobs, one may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection, Server, ViewText
from mergeplan.planner.engine.spark.catalog import CatalogLock, Owner, spark_folder
from mergeplan.planner.engine.spark.connect.connect_session import ConnectSession
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.engine.spark.process.format_requests import FormatRequest
from mergeplan.planner.engine.table import PartitionColumn, Table, time_partitioning
from mergeplan.planner.errors import Cancelled, QueryError, RequestError, SparkUnavailable
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[5]
SERVER = """
import sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.process.warm import serve_warm

small = Connection(conf=(("spark.driver.memory", "800m"), ("spark.sql.shuffle.partitions", "2")), master="local[2]")
serve_warm(Path(sys.argv[1]), small, profile="metadata", say=lambda line: print(line, flush=True))
print("ended", flush=True)
"""
CLIENT = """
import sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection, ViewText
from mergeplan.planner.engine.table import Table
from mergeplan.planner.model.model import Column
from mergeplan.planner.engine.spark.engine import open_engine

home, name, rows = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
engine = open_engine(Connection(), home, wait=0)
table = Table(f"mergeplan__shop.{name}", (Column("id", "bigint"),))
engine.tables.create(table)
engine.tables.replace(table, f"SELECT id FROM range({rows})")
wrote = engine.jobs()
engine.catalog.swap_view(ViewText(f"shop.{name}", f"SELECT id FROM {table.name}"))
print(engine.fetch(f"SELECT count(*) FROM shop.{name}").rows, wrote > 0, engine.jobs() > wrote)
engine.close()
"""

BACKFILL = """
import os, signal, sys
from pathlib import Path
from mergeplan.planner.apply.events import BatchDone
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import plan_and_apply, rows, write_shop

warm, home, die_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
store, engine, done = StateStore(f"sqlite:///{home}/state.db"), open_engine(Connection(), warm, wait=0), []
def hear(event):
    if isinstance(event, BatchDone) and event.model == "shop.daily":
        done.append(event.interval.start.day)
        print(event.interval.start.day, flush=True)
        if len(done) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
outcome = plan_and_apply(write_shop(home / "shop"), engine, store, emit=hear)
print(outcome.promoted.revision, rows(engine, "SELECT total FROM shop.shown"))
engine.close()
"""

PROMOTION = """
import os, signal, sys
from pathlib import Path
from mergeplan.planner.apply.events import ViewSwapped
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.table import Table
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from mergeplan.planner.model.model import Column

warm, home = map(Path, sys.argv[1:])
store, engine = StateStore(f"sqlite:///{home}/state.db"), open_engine(Connection(), warm, wait=0)
ID = (Column("id", "int"),)
def built(number):
    made = [snapshot(f"s.{name}", f"v{number}") for name in "abcdef"]
    for each in made:
        engine.tables.create(Table(each.table, ID))
        engine.tables.replace(Table(each.table, ID), f"SELECT {number} AS id")
        store.tables.register(each.table, ID)
    return environment("prod", *made)
def die(event):
    if isinstance(event, ViewSwapped) and event.view == "s.c":
        os.kill(os.getpid(), signal.SIGKILL)
first, second = built(1), built(2)
with store.leases.hold("prod", "the one that dies") as lease:
    promote_views(store, engine, lease, Wanted(store.environments.get("prod"), first), emit=lambda event: None)
    promote_views(store, engine, lease, Wanted(store.environments.get("prod"), second), emit=die)
"""

RECOVERY = """
import sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.apply.promotion.recovery import recover_promotions
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.state.store import StateStore

warm, home = map(Path, sys.argv[1:])
store, engine = StateStore(f"sqlite:///{home}/state.db"), open_engine(Connection(), warm, wait=0)
found = [store.promotions.pending(), recover_promotions(store, engine, lambda event: None), store.promotions.pending()]
print(len(found[0]), [(each.environment, str(each.ended), each.views) for each in found[1]], len(found[2]))
print([engine.fetch(f"SELECT * FROM s.{name}").rows[0][0] for name in "abcdef"])
engine.close()
"""


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder whose catalog a warm Spark serves; that it ends in silence is tested where it ends."""
    home = tmp_path_factory.mktemp("warm") / ".mergeplan"
    server = run(SERVER, home)
    assert server.stdout is not None
    ready = server.stdout.readline()
    assert ready.startswith("warm Spark ready on 127.0.0.1:"), server.communicate(timeout=60)
    yield home
    server.send_signal(signal.SIGTERM)
    assert server.communicate(timeout=60) == ("ended\n", "")
    assert server.returncode == 0
    assert not (spark_folder(home) / "owner.json").exists()


@pytest.fixture
def warm_engine(warm_home: Path) -> Iterator[SparkEngine]:
    engine = open_engine(Connection(), warm_home, wait=0)
    yield engine
    engine.close()


def test_two_processes_work_on_one_catalog_at_once_and_say_nothing_else(
    warm_home: Path, warm_engine: SparkEngine
) -> None:
    clients = [run(CLIENT, warm_home, name, rows) for name, rows in (("a", 3), ("b", 5))]
    answers = [client.communicate(timeout=300) for client in clients]

    assert answers == [("((3,),) True True\n", ""), ("((5,),) True True\n", "")]
    assert {"a", "b"} <= warm_engine.catalog.objects("shop")


def test_kill_9_in_the_middle_of_a_backfill_and_the_next_process_goes_on(warm_home: Path, tmp_path: Path) -> None:
    killed = run(BACKFILL, warm_home, tmp_path, 2)
    before, _ = killed.communicate(timeout=180)
    finished, _ = run(BACKFILL, warm_home, tmp_path, 0).communicate(timeout=180)

    assert (killed.returncode, before.split()) == (-9, ["1", "2"])
    assert finished.splitlines() == ["3", "4", "5", "1 [(60,)]"]


def test_kill_9_between_two_views_and_the_next_process_finishes(warm_home: Path, tmp_path: Path) -> None:
    killed = run(PROMOTION, warm_home, tmp_path)
    killed.communicate(timeout=120)
    finished, _ = run(RECOVERY, warm_home, tmp_path).communicate(timeout=120)

    assert killed.returncode == -9
    assert finished.splitlines() == [
        "1 [('prod', 'finished', ('s.a', 's.b', 's.c', 's.d', 's.e', 's.f'))] 0",
        "[2, 2, 2, 2, 2, 2]",
    ]


def test_views_cost_no_job_and_a_count_does_whatever_others_run(warm_home: Path, warm_engine: SparkEngine) -> None:
    other = open_engine(Connection(), warm_home, wait=0)
    before = warm_engine.jobs()

    other.fetch("SELECT count(*) FROM range(10)")
    warm_engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a"))
    warm_engine.catalog.swap_view(ViewText("shop.v", "SELECT 2 AS a"))
    assert (warm_engine.jobs(), other.jobs() > 0) == (before, True)

    warm_engine.fetch("SELECT count(*) FROM range(10)")
    assert warm_engine.jobs() > before
    other.close()


def test_what_one_session_replaces_the_other_sees(warm_home: Path, warm_engine: SparkEngine) -> None:
    table = Table("mergeplan__shop.full", (Column("id", "int"),))
    warm_engine.tables.create(table)
    warm_engine.tables.replace(table, "SELECT 1 id")
    other = open_engine(Connection(), warm_home, wait=0)
    assert other.fetch("SELECT * FROM mergeplan__shop.full").rows == ((1,),)

    warm_engine.tables.replace(table, "SELECT 2 id")

    assert other.fetch("SELECT * FROM mergeplan__shop.full").rows == ((2,),)
    other.close()


def test_intervals_seeds_and_errors_are_as_on_a_spark_of_our_own(warm_engine: SparkEngine) -> None:
    columns = (Column("at", "timestamp"), Column("v", "int"))
    table = Table("mergeplan__shop.hourly", columns, time_partitioning(columns, "at", "", 3600))
    day = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
    warm_engine.tables.create(table)
    warm_engine.tables.replace_interval(table, "SELECT timestamp'2024-01-01 05:06:07' at, 1 v", day)

    written = warm_engine.tables.replace_interval(table, "SELECT timestamp'2024-01-01 06:06:07' at, 2 v", day)

    assert (written.rows, written.partitions) == (1, ("2024-01-01 06:00:00",))
    assert warm_engine.fetch("SELECT at, v FROM mergeplan__shop.hourly").rows == (
        (datetime(2024, 1, 1, 6, 6, 7, tzinfo=UTC), 2),
    )
    seed = Table("mergeplan__shop.seed", (Column("v", "int"),))
    warm_engine.tables.create(seed)
    with pytest.raises(QueryError, match=r"^row 1, column 'v': 'x' is not a value of type int\.$"):
        warm_engine.tables.load(seed, [("x",)])
    with pytest.raises(QueryError, match=r"^A column.* `nope` cannot be resolved") as caught:
        warm_engine.fetch("SELECT 1,\n nope")
    assert (caught.value.line, caught.value.column) == (2, 2)


def test_a_table_cut_by_columns_is_merged_and_taken_back_as_on_a_spark_of_our_own(warm_engine: SparkEngine) -> None:
    parts = (
        PartitionColumn("name", "string", "`name`", hidden=False),
        PartitionColumn("mergeplan_part_1", "string", "'x'", hidden=True),
    )
    table = Table("mergeplan__shop.cut", (Column("id", "int"), Column("name", "string")), parts=parts)
    batch_id, rows = "00000000000000ab", "SELECT id, name FROM mergeplan__shop.cut ORDER BY id"
    warm_engine.tables.create(table)
    warm_engine.tables.replace(table, "SELECT 1 AS id, 'a' AS name")

    for _ in range(2):
        warm_engine.tables.merge(table, lambda base: f"SELECT id, name FROM {base} UNION ALL SELECT 2, 'b'", batch_id)

    assert warm_engine.fetch(rows).rows == ((1, "a"), (2, "b"))
    warm_engine.tables.unmerge(table, batch_id)
    assert warm_engine.fetch(rows).rows == ((1, "a"),)


def test_what_a_query_would_read_is_told_without_a_job(warm_engine: SparkEngine) -> None:
    columns = (Column("dt", "date"), Column("v", "int"))
    table = Table("mergeplan__shop.days", columns, time_partitioning(columns, "dt", "", 86_400))
    warm_engine.tables.create(table)
    sixty = "SELECT date_add(date'2024-01-01', cast(id AS int)) dt, 1 v FROM range(60)"
    warm_engine.tables.replace_interval(
        table, sixty, Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC))
    )
    before = warm_engine.jobs()

    one, fifty = (
        warm_engine.scan_bytes(f"SELECT * FROM {table.name} WHERE dt <= '2024-{day}'") for day in ("01-01", "02-19")
    )

    assert one and fifty and 40 * one < fifty < 60 * one
    assert warm_engine.scan_bytes(f"SELECT * FROM {table.name}") is None
    assert warm_engine.jobs() == before


def test_the_names_that_a_query_reads_are_told_over_connect_without_a_job(warm_engine: SparkEngine) -> None:
    warm_engine.tables.create(Table("mergeplan__shop.seen", (Column("id", "int"),)))
    before = warm_engine.jobs()
    named = "WITH t AS (SELECT id FROM MergePlan__Shop.Seen) SELECT t.id FROM t WHERE id IN (SELECT id FROM {})"

    assert warm_engine.reads(named.format("t")) == {"mergeplan__shop.seen", "t"}
    assert warm_engine.reads("SELECT 1 AS id") == frozenset()
    assert warm_engine.reads(named.format("mergeplan__shop.nowhere")) is None
    for query, told in (("SELECT\n  CAST(1 AS TEXT) AS a", (2, 13)), ("SELECT 1 a\n  FRM x y", (2, 3))):
        with pytest.raises(QueryError) as refused:
            warm_engine.reads(query)
        assert (refused.value.line, refused.value.column) == told
    assert warm_engine.jobs() == before


def test_an_attached_query_is_cancelled(warm_engine: SparkEngine) -> None:
    before = warm_engine.jobs()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(warm_engine.fetch, "SELECT count(*) FROM range(100000000000) WHERE id % 7 = 1")
        while warm_engine.jobs() == before:
            threading.Event().wait(0.05)

        warm_engine.cancel()

        with pytest.raises(Cancelled):
            slow.result(timeout=60)
    assert warm_engine.fetch("SELECT 1").rows == ((1,),)


def test_without_its_token_a_warm_spark_is_closed(warm_home: Path) -> None:
    owner = CatalogLock(spark_folder(warm_home)).owner()
    assert owner is not None

    with pytest.raises(RequestError, match="does not answer"):
        ConnectSession(Server(f"sc://localhost:{owner.port}/;token=guessed"))


def test_a_killed_warm_spark_takes_its_java_along_and_frees_the_catalog(home: Path) -> None:
    server = run(SERVER, home)
    assert server.stdout is not None
    server.stdout.readline()

    server.kill()
    server.communicate(timeout=30)

    lock = CatalogLock(spark_folder(home))
    assert lock.acquire(60), "its Java inherits the lock"
    owner = lock.owner()
    assert owner is not None
    assert owner.pid == os.getpid()
    lock.release()


def test_a_warm_spark_that_is_killed_under_a_query_is_away_and_no_fault_of_the_query(home: Path) -> None:
    server = run(SERVER, home)
    assert server.stdout is not None
    server.stdout.readline()
    engine = open_engine(Connection(), home, wait=0)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(engine.fetch, "SELECT count(*) FROM range(100000000000) WHERE id % 7 = 1")
        while not engine.jobs():
            threading.Event().wait(0.05)

        server.kill()
        server.communicate(timeout=30)

        with pytest.raises(SparkUnavailable, match="Spark does not answer") as told:
            slow.result(timeout=120)
    assert told.value.retry
    with pytest.raises(SparkUnavailable):
        engine.schema("SELECT 1 AS one")
    engine.close()


def test_a_side_file_left_behind_does_not_count_as_a_warm_spark(home: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait(10)

    assert not Owner(dead.pid, "mergeplan warm", port=1).serves
    assert not Owner(os.getpid(), "mergeplan plan").serves


PYTHON_PROJECT = {
    "config.yaml": """
gateways:
  spark:
    connection:
      type: spark
      master: local[2]
      config: {spark.driver.memory: 800m}
model_defaults: {dialect: spark, start: 2026-01-01}
""",
    "models/made.py": """
import pandas as pd
from sqlmesh import model

@model("shop.made", columns={"id": "int"}, kind="FULL")
def execute(context, start, end, execution_time, **kwargs):
    return pd.DataFrame({"id": [1, 2]})
""",
}


def test_the_verb_keeps_a_spark_that_the_other_verbs_of_a_project_with_a_python_model_reach(tmp_path: Path) -> None:
    """Spark asks for the token that is published: there is one."""
    for name, text in PYTHON_PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    verb = [sys.executable, "-P", "-m", "mergeplan.planner.cli.main"]
    asked = ["fetchdf", "SELECT 6 * 7 AS n", "--output", "json"]
    with subprocess.Popen([*verb, "warm"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as warm:
        assert warm.stdout is not None
        assert "warm Spark ready" in warm.stdout.readline()
        asking = subprocess.run([*verb, *asked], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        warm.send_signal(signal.SIGTERM)

    assert '"rows":[[42]]' in asking.stdout, asking.stderr


DELTA = Connection(formats=("delta",))


def test_a_client_that_needs_a_table_format_gets_a_warm_spark_that_has_it_when_others_have_left(home: Path) -> None:
    server = run(SERVER, home)
    assert server.stdout is not None
    server.stdout.readline()
    first = open_engine(Connection(), home)
    table = Table("mergeplan__shop.plain", (Column("id", "int"),))
    first.tables.create(table)
    first.tables.replace(table, "SELECT 1 AS id")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(open_engine, DELTA, home)
        threading.Event().wait(3)
        assert first.fetch("SELECT * FROM mergeplan__shop.plain").rows == ((1,),)
        assert not waiting.done()
        first.close()
        second = waiting.result(timeout=300)

    second.fetch("CREATE TABLE mergeplan__shop.d USING delta AS SELECT id + 1 AS id FROM mergeplan__shop.plain")
    assert second.fetch("SELECT * FROM mergeplan__shop.d").rows == ((2,),)
    second.close()
    third = open_engine(DELTA, home)  # without another start
    third.close()
    server.send_signal(signal.SIGTERM)
    assert server.communicate(timeout=60)[0].count("warm Spark ready") == 1  # besides the line that was read


def test_a_format_that_cannot_be_had_is_refused_and_the_warm_spark_goes_on(home: Path, tmp_path: Path) -> None:
    server = run(SERVER, home)
    assert server.stdout is not None
    server.stdout.readline()

    with pytest.raises(RequestError, match="holds no jar of Delta"):
        open_engine(replace(DELTA, jars_dir=str(tmp_path)), home)
    unreachable = (("spark.jars.packages", "io.delta:delta-spark_4.1_2.13:0.0.1"),)
    with pytest.raises(RequestError, match="Spark cannot fetch"):
        open_engine(replace(DELTA, conf=unreachable), home)

    engine = open_engine(Connection(), home)
    assert engine.fetch("SELECT 1").rows == ((1,),)
    engine.close()
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)


def test_a_warm_spark_starts_without_the_formats_of_before_when_their_jars_are_gone(home: Path, tmp_path: Path) -> None:
    spark_folder(home).mkdir(parents=True)
    before = FormatRequest(("delta",), jars_dir=str(tmp_path / "gone"))
    (spark_folder(home) / "warm_formats.json").write_text(json.dumps(asdict(before)))

    server = run(SERVER, home)

    assert server.stdout is not None
    assert server.stdout.readline().startswith("Spark starts without the table formats of before: ")
    assert "warm Spark ready" in server.stdout.readline()
    server.terminate()
    server.communicate(timeout=60)
