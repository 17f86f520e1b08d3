"""How a Spark is started: quietly, with no Java around, one process per embedded catalog."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import (
    CatalogLock,
    Owner,
    driver_conf,
    is_embedded,
    is_running,
    spark_folder,
)
from mergeplan.planner.engine.spark.connect.connect_session import without_token
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.open_session import open_session
from mergeplan.planner.engine.spark.process.java import Profile
from mergeplan.planner.errors import CatalogBusy, Refused, RequestError

ROOT = Path(__file__).parents[4]
SCRIPT = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.errors import QueryError, SparkUnavailable
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.engine.spark.engine import open_engine

assert "pyspark" not in sys.modules
engine = open_engine(Connection(conf=(("spark.driver.memory", "600m"),), master="local[2]"), Path(sys.argv[1]))
columns = (Column("at", "timestamp"),)
table = Table("s.hourly", columns, time_partitioning(columns, "at", "", 3600))
day = Interval(datetime(2024, 3, 30, tzinfo=UTC), datetime(2024, 4, 2, tzinfo=UTC))
engine.tables.create(table)
engine.tables.create(table)
print(engine.tables.replace_interval(table, "SELECT timestamp'2024-03-31 01:30:00' at", day))
print(engine.fetch("SELECT at, cast(at AS string) FROM s.hourly").rows)
for sql in ("SELECT nope", "SELECT raise_error('no') FROM range(2)", "SELECT * FROM s.gone"):
    try:
        engine.fetch(sql)
    except QueryError as error:
        print(error.condition)
engine.close()
print("Java ended:", engine._sessions.current.jvm.process.returncode is not None)
engine = open_engine(Connection(master="local[1]"), Path(sys.argv[1]))
print(sorted(engine.catalog.objects("s")))
engine._sessions.current.jvm.process.kill()
engine._sessions.current.jvm.process.wait()
for ask in (lambda: engine.fetch("SELECT 1"), lambda: engine.catalog.drop_view("s.v"), engine.jobs):
    try:
        ask()
    except SparkUnavailable as error:
        print(error.message)
engine.close()
"""
SAID = """\
Written(rows=1, partitions=('2024-03-31 01:00:00',))
((datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.timezone.utc), '2024-03-31 01:30:00'),)
UNRESOLVED_COLUMN.WITHOUT_SUGGESTION
USER_RAISED_EXCEPTION
TABLE_OR_VIEW_NOT_FOUND
Java ended: True
['hourly']
Spark has ended.
Spark has ended.
Spark has ended.
"""


@pytest.mark.prove
def test_nothing_but_our_own_words_is_printed_in_any_time_zone_and_without_a_java(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        "PATH": str(work),
        "TZ": "Europe/Berlin",
        "PYTHONPATH": str(ROOT),
        "MERGEPLAN_WEBHOOK_SECRET": "s3cret",
    }

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "a home")],
        cwd=work, env=environment, capture_output=True, text=True, timeout=400,
    )  # fmt: skip

    assert (done.stdout, done.stderr, done.returncode) == (SAID, "", 0)
    assert list(work.iterdir()) == []


def test_a_second_process_is_told_in_one_sentence_who_holds_the_catalog(home: Path) -> None:
    lock = CatalogLock(spark_folder(home))
    lock.acquire(0)
    lock.publish(Owner(os.getpid(), "mergeplan plan pr_7"))

    with pytest.raises(Refused) as caught:
        open_session(Connection(), home, Profile.METADATA, wait=0.2)

    assert (
        caught.value.message
        == f"the tables in {home}/spark are in use by process {os.getpid()} (`mergeplan plan pr_7`)."
    )
    assert "mergeplan warm" in caught.value.hint
    lock.release()
    assert not lock.owner_path.exists()


def test_a_copy_of_the_folder_is_refused_since_its_files_are_those_of_the_original(home: Path, tmp_path: Path) -> None:
    lock = CatalogLock(spark_folder(home))
    for _ in range(2):
        assert lock.acquire(0)
        lock.release()
    shutil.copytree(home, tmp_path / "copy")

    with pytest.raises(Refused) as caught:
        CatalogLock(spark_folder(tmp_path / "copy")).acquire(0)

    assert f"{tmp_path}/copy/spark are in {home}/spark: this folder is a copy, or was moved." in caught.value.message


def test_a_warm_spark_that_is_starting_is_waited_for(home: Path) -> None:
    """However long it takes; one that has started and does not answer is not."""
    lock = CatalogLock(spark_folder(home))
    lock.acquire(0)
    lock.publish(Owner(os.getpid(), "mergeplan warm", warm=True))
    looks: list[int] = []

    def third_look() -> bool:
        looks.append(1)
        return len(looks) == 3

    assert not CatalogLock(spark_folder(home)).acquire(1e-9, stop=third_look)
    lock.publish(Owner(os.getpid(), "mergeplan warm", port=1, warm=True))
    with pytest.raises(CatalogBusy) as caught:
        CatalogLock(spark_folder(home)).acquire(1e-9)
    assert caught.value.retry
    with pytest.raises(CatalogBusy):
        CatalogLock(spark_folder(home)).acquire(0)
    lock.release()


def test_the_lock_outlives_its_process_until_the_inheriting_java_has_ended(home: Path) -> None:
    lock = CatalogLock(spark_folder(home))
    lock.acquire(0)
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock.descriptor])  # in Java's place
    os.close(lock.descriptor)

    with pytest.raises(Refused):
        CatalogLock(spark_folder(home)).acquire(0.1)

    child.communicate(timeout=120)
    again = CatalogLock(spark_folder(home))
    assert again.acquire(0)
    again.release()


def test_a_process_opens_one_spark_at_a_time(engine: SparkEngine, home: Path) -> None:
    with pytest.raises(RequestError, match="has a Spark open already"):
        open_session(Connection(), home, Profile.METADATA, wait=0)

    assert engine.fetch("SELECT 1").rows == ((1,),)
    lock = CatalogLock(spark_folder(home))
    assert lock.acquire(0)
    lock.release()


def test_what_the_lock_knows_is_for_this_user_only(home: Path) -> None:
    lock = CatalogLock(spark_folder(home))
    lock.acquire(0)

    assert lock.owner_path.stat().st_mode & 0o777 == 0o600
    assert json.loads(lock.owner_path.read_text())["pid"] == os.getpid()
    lock.release()


@pytest.mark.parametrize(
    "connection",
    [
        Connection(remote="sc://spark.internal"),
        Connection(catalog="lake"),
        Connection(config_dir="conf"),
        Connection(conf=(("spark.hadoop.hive.metastore.uris", "thrift://metastore:9083"),)),
    ],
)
def test_a_connection_with_a_catalog_of_its_own_needs_no_lock(connection: Connection) -> None:
    assert not is_embedded(connection)
    assert is_embedded(Connection(master="spark://spark.internal:7077", conf=(("spark.executor.memory", "2g"),)))


def test_a_connections_settings_win_over_ours(home: Path, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\nspark.a=1\nspark.ui.enabled\t true\n\nspark.b  x = y\n")
    settings = (("spark.b", "2"), ("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false"))

    conf = driver_conf(Connection(settings, master="spark://spark.internal:7077", config_dir=str(tmp_path)), home)

    assert (conf["spark.a"], conf["spark.b"], conf["spark.ui.enabled"]) == ("1", "2", "true")
    assert (conf["spark.sql.session.timeZone"], conf["spark.sql.ansi.enabled"]) == ("Asia/Tokyo", "false")
    assert conf["spark.master"] == "spark://spark.internal:7077"
    assert not {"spark.driver.host", "spark.sql.warehouse.dir"} & conf.keys()


def test_a_server_and_a_warm_spark_run_already_and_any_other_is_started(home: Path) -> None:
    assert is_running(Connection(remote="sc://somewhere:15002"), home)
    assert not is_running(Connection(master="spark://somewhere:7077", config_dir="/conf"), home)
    assert not is_running(Connection(), home)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        lock = CatalogLock(spark_folder(home))
        lock.acquire()
        lock.publish(Owner(os.getpid(), "warm", listening.getsockname()[1], warm=True))

        assert is_running(Connection(), home)
        lock.release()


def test_an_address_is_shown_without_its_token() -> None:
    ends = ("", "/", "/;use_ssl=true;token=hidden", ";token=hidden")

    shown = [without_token(f"sc://spark.internal:443{end}") for end in ends]

    assert set(shown) == {"sc://spark.internal:443"}
