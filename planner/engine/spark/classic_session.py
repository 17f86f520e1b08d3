"""A Spark of our own: a JVM that this process starts and ends, which may serve other processes of the machine."""

from __future__ import annotations

import os
import queue
import secrets
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mergeplan.planner.engine.analysis import TOO_SLOW, Analysis, PairResult
from mergeplan.planner.engine.protocol import Connection, Server
from mergeplan.planner.engine.spark.catalog import CatalogLock, session_conf, spark_folder
from mergeplan.planner.engine.spark.errors import explain_unwritable, translate_error
from mergeplan.planner.engine.spark.plans.comparing import PlanComparing
from mergeplan.planner.engine.spark.process.connect_server import ConnectServer, local_url, serving_conf
from mergeplan.planner.engine.spark.process.format_settings import needs_open_metastore, remember_formats, starting_conf
from mergeplan.planner.engine.spark.process.installed import spark_home
from mergeplan.planner.engine.spark.process.java import Jvm, Profile, java_environment, start_jvm
from mergeplan.planner.engine.spark.scans import plan_bytes
from mergeplan.planner.engine.spark.session import LISTED, EngineSession, Frame, listing_here, trace_id
from mergeplan.planner.errors import MergeplanError, RequestError
from mergeplan.planner.naming import SESSION_CATALOG, parts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_gateway_lock = threading.Lock()
T = TypeVar("T")


class TooSlowError(Exception):
    """A result did not come in time."""


class _Raised(Exception):
    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason


_END = object()


def yield_in_time(results: Iterable[T], seconds: float) -> Iterator[T]:
    """Yield a thread's results; if one takes too long, raise TooSlowError and leave the thread: it cannot be ended."""
    finished: queue.SimpleQueue[object] = queue.SimpleQueue()
    threading.Thread(target=_produce, args=(results, finished), daemon=True).start()
    while True:
        try:
            result = finished.get(timeout=seconds)
        except queue.Empty:
            raise TooSlowError from None
        if result is _END:
            return
        if isinstance(result, _Raised):
            raise result.reason
        yield result  # type: ignore[misc]


def _produce(results: Iterable[T], finished: queue.SimpleQueue[object]) -> None:
    try:
        for result in results:
            finished.put(result)
    except BaseException as error:
        finished.put(_Raised(error))
    else:
        finished.put(_END)


class ClassicSession:
    """A Spark driver of our own: a JVM that this process starts and ends."""

    def __init__(self, connection: Connection, home: Path, profile: Profile, lock: CatalogLock | None) -> None:
        self._lock = lock
        self._comparing, self._plans = threading.Lock(), cast("PlanComparing | None", None)
        self._catalog = connection.catalog
        try:
            spark_home()  # raises where pyspark is a client, of which half cannot be imported
            from pyspark import SparkContext

            if SparkContext._active_spark_context is not None:
                raise RequestError("this process has a Spark open already.", hint="Close that one first.")
            token = secrets.token_urlsafe(32) if connection.serves else ""
            conf = starting_conf(connection, home) | (serving_conf(token) if token else {})
            self._connection = connection
            config_dir = Path(connection.config_dir) if connection.config_dir else None
            keep_open = [lock.descriptor] if lock else []
            self.jvm = start_jvm(spark_folder(home), conf, profile, config_dir=config_dir, keep_open=keep_open)
            try:
                self.spark, self.gateway = _connect_jvm(self.jvm)
                self.serving = ConnectServer(self.spark, token)
                _build_catalog(self.spark)
                if needs_open_metastore(conf):
                    self.spark.sql("SHOW SCHEMAS").collect()
                remember_formats(connection, home)
                if connection.catalog:
                    self.spark.catalog.setCurrentCatalog(connection.catalog)
            except BaseException as error:
                self.jvm.stop()
                _forget_gateway()
                if isinstance(error, MergeplanError) or not isinstance(error, Exception):
                    raise
                reason = translate_error(error, "")
                raise (explain_unwritable(reason, lock.folder) if lock else reason) from None
        except BaseException:
            if lock:
                lock.release()
            raise

    @property
    def operations(self) -> None:
        """None: it ends with this process."""
        return None

    @property
    def has_ended(self) -> bool:
        return self.jvm.process.poll() is not None

    @property
    def is_isolated(self) -> bool:
        """True when functions in Python run in workers that are isolated."""
        return self.jvm.workers is not None

    @property
    def _scala_context(self) -> Any:
        return self.spark.sparkContext._jsc.sc()

    def sql(self, text: str) -> Frame:
        from pyspark.sql.classic.dataframe import DataFrame

        # pyspark would make an empty array of arguments before: five calls of Java's for each statement.
        session: Any = self.spark
        return DataFrame(session._jsparkSession.sql(text), session)

    def observe(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        from pyspark.sql.functions import expr
        from pyspark.sql.observation import Observation

        observation = Observation()
        observed_frame = frame.observe(observation, *(expr(sql).alias(name) for name, sql in aggregates.items()))
        return observed_frame, lambda: observation.get

    def condition(self, sql: str) -> Any:
        from pyspark.sql.functions import expr

        return expr(sql)

    def run_unlisted(self, sql: str) -> Frame:
        apart = _open_session(self.spark)  # the setting must not reach what else this session does meanwhile
        apart.catalog.setCurrentCatalog(self.spark.catalog.currentCatalog())
        apart.conf.set(LISTED, "false")
        return apart.sql(sql)

    def enter(self, tag: str) -> None:
        trace = trace_id(os.environ)
        about = f"mergeplan, trace {trace}" if trace else "mergeplan"
        self.spark.sparkContext.setJobGroup(tag, about, interruptOnCancel=True)

    def interrupt(self, tag: str) -> None:
        self._scala_context.cancelJobGroupAndFutureJobs(tag)

    def scan_bytes(self, sql: str) -> int | None:
        with listing_here(self.spark):
            frame: Any = self.spark.sql(sql)
            return plan_bytes(frame._jdf.queryExecution().optimizedPlan())

    def parse_tree(self, sql: str) -> str | None:
        session: Any = self.spark
        return str(session._jsparkSession.sessionState().sqlParser().parsePlan(sql).treeString())

    def frame_tree(self, frame: Frame, sql: str) -> str:
        classic: Any = frame
        return str(classic._jdf.queryExecution().logical().treeString())

    def compare_queries(self, analysis: Analysis, *, may_start: bool = True) -> tuple[PairResult, ...]:
        with self._comparing:
            if self._plans is None or self._plans.settings != analysis.settings:
                self._plans = PlanComparing(self.new_session().spark, analysis.settings)
            results = list[PairResult]()
            try:
                results += yield_in_time(self._plans.compare(analysis), analysis.patience)
            except TooSlowError:
                self._plans = None  # its thread may go on for long
                results += [PairResult(gave_up=TOO_SLOW)] * (len(analysis.pairs) - len(results))
            return tuple(results)

    def location(self, table: str, unless: str) -> str | None:
        catalog, schema, name = parts_of(table)
        session: Any = self.spark
        if (catalog or session.catalog.currentCatalog()) != SESSION_CATALOG:
            return None
        with suppress(Exception):  # of a missing table: the statement that is run then reports it
            of_spark = session._jvm.org.apache.spark.sql.catalyst
            identifier = of_spark.TableIdentifier(name, session._jvm.scala.Some(schema))
            metadata = session._jsparkSession.sessionState().catalog().getTableMetadata(identifier)
            if not metadata.properties().contains(unless):
                return str(of_spark.catalog.CatalogUtils.URIToString(metadata.location()))
        return None

    def jobs(self) -> int:
        return int(self._scala_context.dagScheduler().numTotalJobs())

    def new_session(self) -> EngineSession:
        copied_session = copy(self)
        copied_session.spark = _open_session(self.spark)
        if self._catalog:
            copied_session.spark.catalog.setCurrentCatalog(self._catalog)
        return copied_session

    def let_go(self) -> None:
        with suppress(Exception):  # it ends with the Spark in any case
            for view in self.spark.catalog.listTables():
                if view.isTemporary:
                    self.spark.catalog.uncacheTable(view.name)
                    self.spark.catalog.dropTempView(view.name)

    def server(self) -> Server:
        if not self.serving.token:
            raise RequestError("this Spark was started to serve no other process.")
        url = local_url(self.serving.port, self.serving.token)
        return Server(url, tuple(session_conf(self._connection).items()), self._connection.catalog, self.is_isolated)

    def close(self, timeout: float = 20.0) -> None:
        try:
            # The JVM may be gone, of which pyspark warns, and it is ended below in any case.
            with suppress(Exception), warnings.catch_warnings(action="ignore"):
                self.spark.stop()
            with suppress(Exception):
                self.gateway.shutdown()
            _forget_gateway()
            self.jvm.stop(timeout)
        finally:
            if self._lock:
                self._lock.release()
        self.make_archive()

    def make_archive(self) -> None:
        archive = self.jvm.archive
        if archive is not None and archive.is_missing() and not os.environ.get("CI"):  # there no later start needs it
            archive.make_later(java_environment())


def _connect_jvm(jvm: Jvm) -> tuple[SparkSession, Any]:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql.session import SparkSession

    with _gateway_lock:
        interrupt = signal.getsignal(signal.SIGINT)
        # The only way to tell pyspark that a JVM of ours is running.
        os.environ.update(PYSPARK_GATEWAY_PORT=str(jvm.port), PYSPARK_GATEWAY_SECRET=jvm.secret)
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call]  # pyspark's own
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        context: Any = SparkContext(gateway=gateway)
        context.pythonExec = jvm.python
        context._accumulatorServer.handle_error = _ignore_error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)  # pyspark put its own there
        return SparkSession(context), gateway


def _open_session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    _build_catalog(session)
    return session


def _build_catalog(session: SparkSession) -> None:
    # Spark builds it at its first use, by the settings of the session that is active in the thread. In a thread without
    # one it would remember which files a table has, and miss what is written later.
    session.sql("SELECT 1")


def _ignore_error(*_: object) -> None:
    """Print nothing: pyspark prints a stack trace when the JVM is killed, and the next call raises SparkUnavailable."""


def _forget_gateway() -> None:
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    if context is not None:  # its JVM was gone before pyspark could stop it: what is left of it is Python's
        context._jsc = None
        context.stop()
    SparkContext._gateway = None
    SparkContext._jvm = None
