"""What a Spark session is to us, classic or Connect: opened, cancelled, counted, closed."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.protocol import Operation, Server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame: TypeAlias = "DataFrame"  # so that the engine need not know pyspark
USER = "mergeplan"  # as which we are known to a warm Spark
LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"  # folders; a job of Spark's lists more than these
LISTED = "spark.sql.hive.manageFilesourcePartitions"
_listing_lock = threading.Lock()


class ServerOperations(Protocol):
    """The writes that a Spark goes on with when their client has gone."""

    server: str

    def new(self) -> Operation:
        """A name for this session's next write."""

    def writing(self, operation: Operation) -> AbstractContextManager[None]:
        """A context in which this thread's next write is this operation."""

    def attach(self, operation: Operation) -> EngineSession:
        """The session of an operation that another process began."""

    def end(self, operation: Operation) -> None:
        """End an operation that another process began."""


class EngineSession(Protocol):
    """What differs between a classic session and a Spark Connect one."""

    spark: SparkSession

    @property
    def operations(self) -> ServerOperations | None:
        """The writes that this Spark goes on with without us; None where it ends with us."""

    @property
    def has_ended(self) -> bool:
        """True when the process of this Spark is gone; False where that cannot be seen from here. It never blocks."""

    def sql(self, text: str) -> Frame:
        """What Spark makes of a statement."""

    def observe(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        """The frame with aggregates (Spark SQL) that are computed on the way, and a function that tells them."""

    def condition(self, sql: str) -> Any:
        """A condition on rows (Spark SQL) as the writers of frames take it."""

    def run_unlisted(self, sql: str) -> Frame:
        """Run a statement that creates a table of which Spark reads the partitions from its folders, so that they all
        move with it."""

    def enter(self, tag: str) -> None:
        """Say that what this thread runs from now on goes by this tag."""

    def interrupt(self, tag: str) -> None:
        """End everything that goes by this tag."""

    def scan_bytes(self, sql: str) -> int | None:
        """How many bytes of files a query would read; None when Spark does not know. No job is started."""

    def parse_tree(self, sql: str) -> str | None:
        """The plan that Spark's parser makes of a query, before any name in it is looked up; None where this Spark
        shows it only when all of them are known."""

    def frame_tree(self, frame: Frame, sql: str) -> str:
        """The same plan of a query that was analysed already, as this frame."""

    def compare_queries(self, analysis: Analysis) -> tuple[PairResult, ...] | None:
        """Return what Spark says of pairs of queries over empty tables; None where it does not show its plans."""

    def location(self, table: str, unless: str) -> str | None:
        """Where a table of Spark's own catalog lies, without a statement; None where it has the property `unless`, or
        only a statement says so."""

    def jobs(self) -> int:
        """How many Spark jobs this session has started."""

    def new_session(self) -> EngineSession:
        """Another session of the same Spark: with settings, temporary views and functions of its own."""

    def let_go(self) -> None:
        """End a session that was set apart."""

    def server(self) -> Server:
        """How another process reaches this Spark; RequestError when none can."""

    def close(self) -> None:
        """Let go of the Spark."""


@contextmanager
def listing_here(spark: SparkSession) -> Iterator[None]:
    """While it lasts the driver lists files by itself, however many folders there are."""
    with _listing_lock:
        before = spark.conf.get(LISTING)
        spark.conf.set(LISTING, str(2**31 - 1))
        try:
            yield
        finally:
            spark.conf.set(LISTING, str(before))


def silence() -> None:
    """pyspark logs every failed query as a line of JSON, py4j every broken call, and gRPC speaks up about forks; our
    errors say it all."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_py4js)
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", module="pyspark")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """False for what py4j logs by no logger of its own: the stack trace of a call whose JVM ended under it."""
    return "/py4j/" not in record.pathname
