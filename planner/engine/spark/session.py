"""The interface of a Spark session, classic or Connect: opened, cancelled, counted, closed."""

from __future__ import annotations

import logging
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
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
TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class ServerOperations(Protocol):
    """The writes that a Spark continues when their client has gone."""

    server: str

    def new(self) -> Operation:
        """Return an operation for this session's next write."""

    def writing(self, operation: Operation) -> AbstractContextManager[None]:
        """Return a context in which this thread's next write is this operation."""

    def attach(self, operation: Operation) -> EngineSession:
        """Return the session of an operation that another process began."""

    def end(self, operation: Operation) -> None:
        """End an operation that another process began."""


class EngineSession(Protocol):
    """The verbs that differ between a classic session and a Spark Connect session."""

    spark: SparkSession

    @property
    def operations(self) -> ServerOperations | None:
        """The writes that this Spark continues without us; None if it ends with us."""

    @property
    def has_ended(self) -> bool:
        """True when the process of this Spark is gone; False where that cannot be seen from here. It never blocks."""

    def sql(self, text: str) -> Frame: ...

    def observe(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        """Return the frame with aggregates (Spark SQL) computed on the way, and a function for their values.

        The function returns {} if Spark does not report them.
        """

    def condition(self, sql: str) -> Any:
        """Return a condition on rows (Spark SQL) as the writers of frames take it."""

    def run_unlisted(self, sql: str) -> Frame:
        """Run a statement that creates a table whose partitions Spark reads from its folders; all move with it."""

    def enter(self, tag: str) -> None:
        """Tag what this thread runs from now on."""

    def interrupt(self, tag: str) -> None:
        """End everything that has this tag."""

    def scan_bytes(self, sql: str) -> int | None:
        """Return how many bytes of files a query would read, without a job; None if Spark does not know."""

    def parse_tree(self, sql: str) -> str | None:
        """Return the parser's plan of a query, before any name is looked up; None if this Spark cannot show it."""

    def frame_tree(self, frame: Frame, sql: str) -> str:
        """Return the same plan for a query that was analysed already, as this frame."""

    def compare_queries(self, analysis: Analysis, *, may_start: bool = True) -> tuple[PairResult, ...] | None:
        """Return Spark's verdict on pairs of queries over empty tables; None if no Spark shows its plans."""

    def location(self, table: str, unless: str) -> str | None:
        """Return the location of a table of Spark's catalog; None if it has `unless`, or if only a statement tells."""

    def jobs(self) -> int:
        """Return how many Spark jobs this session has started."""

    def new_session(self) -> EngineSession:
        """Return another session of the same Spark, with its own settings, temporary views and functions."""

    def let_go(self) -> None:
        """End a separate session."""

    def server(self) -> Server:
        """Return how another process reaches this Spark; raise RequestError if none can."""

    def close(self) -> None: ...


def aggregate_rows(frame: Frame, aggregates: Mapping[str, str]) -> dict[str, Any]:
    values = frame.selectExpr(*(f"{sql} AS `{name}`" for name, sql in aggregates.items())).collect()
    return dict(values[0].asDict())


@contextmanager
def listing_here(spark: SparkSession) -> Iterator[None]:
    """Let the driver list files by itself within the context, however many folders there are."""
    with _listing_lock:
        former_threshold = spark.conf.get(LISTING)
        spark.conf.set(LISTING, str(2**31 - 1))
        try:
            yield
        finally:
            spark.conf.set(LISTING, str(former_threshold))


def silence_libraries() -> None:
    """Silence pyspark, py4j and gRPC: our errors say it all.

    pyspark logs every failed query as a line of JSON, py4j every broken call, and gRPC warns about forks.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_py4js)
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", module="pyspark")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """Return False for what py4j logs by no logger of its own: the stack trace of a call whose JVM ended."""
    return "/py4j/" not in record.pathname


def trace_id(environ: Mapping[str, str]) -> str:
    """Return the trace id in W3C's TRACEPARENT; '' if it is missing or malformed."""
    match = TRACEPARENT.fullmatch(environ.get("TRACEPARENT", ""))
    return match[1] if match else ""
