"""What every test may ask for: a home folder, and one Spark per test process that each test finds empty."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.engine.spark.process.class_archive import OFF, VARIABLE, archive_of
from mergeplan.planner.engine.spark.process.installed import find_java, spark_home
from mergeplan.planner.first_alone import FirstAlone
from mergeplan.planner.state import database
from tests.copied_tables import CopiedTables
from tests.stores import close_stores

# Python looks for garbage after so many new objects and not after 700, as in a verb's own process: a tenth of the time.
gc.set_threshold(100_000, 5, 5)
settings.register_profile("mergeplan", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("mergeplan")
ARCHIVES = Path(sys.prefix) / ".spark"  # `make` puts one there
# What costs time and changes no row: half of the tasks, no plan made again while it runs, no plan written as text for a
# page that nobody opens, and no file of checksums beside each file, which Hadoop makes with a process of its own.
LEAN = (
    ("spark.default.parallelism", "1"),
    ("spark.sql.shuffle.partitions", "1"),
    ("spark.sql.files.minPartitionNum", "1"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.ui.explainMode", "simple"),
    ("spark.ui.liveUpdate.period", "-1"),
    ("spark.hadoop.fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem"),
)
FORMAT = os.environ.get("MERGEPLAN_TABLE_FORMAT", "")  # what `make prove-lakehouse` lays tables out in
METASTORE = bool(os.environ.get("MERGEPLAN_METASTORE"))  # the shared Spark has one, as `make prove` wants it
SMALL = Connection(
    conf=(
        ("spark.driver.memory", "700m"),
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.default.parallelism", "2"),
        # Rows are few: to compile a query costs more than to run it. A test that starts its own Spark has it as it is.
        ("spark.sql.codegen.wholeStage", "false"),
        ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
        # Nobody needs the metastore after a crash of the machine: a commit does not wait for the disk.
        ("spark.driver.extraJavaOptions", "-Dderby.system.durability=test"),
    ),
    master="local[2]",
    serves=True,
    formats=(FORMAT,) if FORMAT else (),
)


def pytest_configure(config: pytest.Config) -> None:
    """pyspark leaves it to the garbage collector to close the sockets over which rows come from its JVM."""
    if VARIABLE not in os.environ:  # where none is there: no test leaves a process behind that makes one
        os.environ[VARIABLE] = str(ARCHIVES) if _has_archive() else OFF
    os.environ.setdefault("MERGEPLAN_SPARK_PROFILE", "metadata")  # no test runs long enough for more
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <socket.*127\.0\.0\.1:ResourceWarning")
    if "MERGEPLAN_CACHE" not in os.environ:  # one for all processes of a run, so that the tests try it too
        folder = tempfile.TemporaryDirectory(prefix="mergeplan-cache-")
        os.environ["MERGEPLAN_CACHE"] = folder.name
        config.add_cleanup(folder.cleanup)


def pytest_collection(session: pytest.Session) -> None:
    """What is imported and collected stays to the end: no garbage collection goes through it, then or later."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


def _has_archive() -> bool:
    archive = archive_of(find_java(), spark_home(), {VARIABLE: str(ARCHIVES)}) if ARCHIVES.is_dir() else None
    return archive is not None and bool(archive.options)


@pytest.fixture(scope="session", autouse=True)
def copied_tables() -> Iterator[CopiedTables]:
    """New state databases get their tables as copies; a test of migrations takes `migrations`, too."""
    copies = CopiedTables(database._run_migrations)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_run_migrations", copies)
        yield copies


@pytest.fixture(autouse=True)
def stores() -> Iterator[None]:
    """Close the state stores that a test opened."""
    yield
    close_stores()


@pytest.fixture
def migrations(copied_tables: CopiedTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """New state databases are made by migrations."""
    monkeypatch.setattr(database, "_run_migrations", copied_tables.migrate)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder of this test's own."""
    return tmp_path / ".mergeplan"


@pytest.fixture(scope="session")
def shared_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """One Spark for all tests of a process: to start one takes seconds.

    Its catalog lies in memory, which costs a third less than Derby, and it is lean. `make prove` and
    `make prove-lakehouse` have a metastore and Spark's own settings, and so has each Spark that a test starts.
    """
    home = tmp_path_factory.mktemp("spark") / ".mergeplan"
    memory = (("spark.sql.catalogImplementation", "in-memory"), ("spark.sql.warehouse.dir", str(home / "warehouse")))
    connection = (
        SMALL if FORMAT or METASTORE else replace(SMALL, conf=tuple(dict((*SMALL.conf, *LEAN, *memory)).items()))
    )
    engine = open_engine(connection, home, "metadata")
    yield engine
    engine.close()


@pytest.fixture
def engine(shared_engine: SparkEngine, pytestconfig: pytest.Config) -> Iterator[SparkEngine]:
    """A Spark with no tables, which is cleared again after the test.

    What still runs in it after half of `--timeout` is cancelled: the signal alone does not end a wait for Java.
    """
    limit = float(pytestconfig.getoption("timeout") or 0)
    watch = threading.Timer(limit / 2, shared_engine.cancel)
    watch.daemon = True
    if limit:
        watch.start()
    yield shared_engine
    watch.cancel()
    empty(shared_engine)


def empty(engine: SparkEngine) -> None:
    """Drop every table and view: by one call where Spark's own catalog lies in memory, elsewhere a schema with one
    statement. One by one it would take seconds."""
    engine._sessions.new_schemas = FirstAlone()
    if not (FORMAT or METASTORE):
        engine._shared.spark._jsparkSession.sessionState().catalog().reset()
        return
    for (schema,) in engine.fetch("SHOW SCHEMAS").rows:
        if schema != "default":
            engine.fetch(f"DROP SCHEMA `{schema}` CASCADE")
    for name in engine.catalog.objects("default"):
        engine.tables.drop(f"default.{name}")


# Minutes each: they begin first, so that no worker is left alone with one at the end.
LONGEST = (
    "test_real_planner.py", "test_isolation.py", "test_process.py", "test_python_api_doc.py", "test_lakehouse.py",
    "test_confined_spark.py", "test_attacks.py",
)  # fmt: skip


@pytest.hookimpl(trylast=True)  # of what -m leaves
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, those of the bot spread among the others: its tests wait where the others compute. Of
    MERGEPLAN_SHARD=2/8 the second of eight parts."""
    places = _spread_files([item.path for item in items])
    items.sort(key=lambda item: (item.path.name not in LONGEST, places[item.path], item.path))
    if shard := os.environ.get("MERGEPLAN_SHARD"):
        part, parts = map(int, shard.split("/"))
        here = [crc32(item.nodeid.partition("[")[0].encode()) % parts == part - 1 for item in items]
        config.hook.pytest_deselected(items=[item for item, is_here in zip(items, here, strict=True) if not is_here])
        items[:] = [item for item, is_here in zip(items, here, strict=True) if is_here]
    if (workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))) > 2:
        items[:] = _gather_spark(items, workers)


def _gather_spark(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests that share a Spark at the beginning of what half of the workers are given: a Spark takes ten seconds to
    start and to warm up. Of what a worker is given others take the end."""
    sizes = [(len(items) + number) // workers for number in range(workers)]
    spark = [item for item in items if "shared_engine" in getattr(item, "fixturenames", ())]
    others = [item for item in items if "shared_engine" not in getattr(item, "fixturenames", ())]
    size = -(-len(spark) // (workers // 2))  # of each part
    parts = [spark[start : start + size] for start in range(0, len(spark), size or 1)]
    if size > sizes[0]:
        return items
    parts = [[]] * (workers - len(parts)) + parts
    ends = accumulate(total - len(part) for total, part in zip(sizes, parts, strict=True))
    starts = [0, *ends]
    rests = (others[start:end] for start, end in pairwise(starts))
    return [item for part, rest in zip(parts, rests, strict=True) for item in (*part, *rest)]


def _spread_files(paths: list[Path]) -> dict[Path, float]:
    """File -> how many of the bot's tests, or of the others, come before it, as a part of these."""
    bot = Path(__file__).parent / "bot"
    places: dict[Path, float] = {}
    for kind in (True, False):
        own = [path for path in paths if path.is_relative_to(bot) is kind]
        for number, path in enumerate(own):
            places.setdefault(path, number / len(own))
    return places
