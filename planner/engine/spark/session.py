"""A Spark session, classic or Connect: opened, cancelled, counted, closed. Only here is pyspark imported."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from uuid import uuid4

from planner.engine.protocol import Connection, Server
from planner.engine.spark.catalog import WAIT, CatalogLock, Owner, driver_conf, is_embedded, session_conf, spark_folder
from planner.engine.spark.errors import condition, translated
from planner.engine.spark.java import Jvm, Profile, start_jvm
from planner.engine.spark.scans import explained_bytes, plan_bytes
from planner.errors import MergeplanError, QueryError, RequestError, SparkAway
from planner.semantics.spark_defaults import DEFAULTS
from planner.semantics.spark_settings import shaping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame: TypeAlias = "DataFrame"  # so that the engine need not know pyspark
USER = "mergeplan"  # as which we are known to a warm Spark
LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"  # folders; a job of Spark's lists more than these
LISTED = "spark.sql.hive.manageFilesourcePartitions"
_gateway_lock = threading.Lock()
_listing_lock = threading.Lock()


class Session(Protocol):
    """What differs between a classic session and a Spark Connect one."""

    spark: SparkSession

    def observed(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        """The frame with aggregates (Spark SQL) that are computed on the way, and a function that tells them."""

    def run_unlisted(self, sql: str) -> Frame:
        """Run a statement that creates a table of which Spark reads the partitions from its folders, so that they all
        move with it."""

    def enter(self, tag: str) -> None:
        """Say that what this thread runs from now on goes by this tag."""

    def interrupt(self, tag: str) -> None:
        """End everything that goes by this tag."""

    def scan_bytes(self, sql: str) -> int | None:
        """How many bytes of files a query would read; None when Spark does not know. No job is started."""

    def parsed(self, sql: str) -> str | None:
        """The plan that Spark's parser makes of a query, before any name in it is looked up; None where this Spark
        shows it only when all of them are known."""

    def jobs(self) -> int:
        """How many Spark jobs this session has started."""

    def apart(self) -> Session:
        """Another session of the same Spark: with settings, temporary views and functions of its own."""

    def let_go(self) -> None:
        """End a session that was set apart."""

    def server(self) -> Server:
        """How another process reaches this Spark; RequestError when none can."""

    def close(self) -> None:
        """Let go of the Spark."""


def serving_conf(token: str) -> dict[str, str]:
    """With what a Spark of our own also serves Spark Connect, on this machine and to who knows the token."""
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.connect.serverStacktrace.enabled": "false",
        "spark.connect.authenticate.token": token,
    }


def open_session(connection: Connection, home: Path, profile: Profile, wait: float = WAIT) -> Session:
    """The Spark that a connection names; for the embedded catalog a warm one if it runs, else one of our own."""
    silence()
    if connection.remote:
        return ConnectSession(connection.remote, session_conf(connection), connection.catalog)
    if not is_embedded(connection):
        return ClassicSession(connection, home, profile, lock=None)
    lock = CatalogLock(spark_folder(home))
    served: list[Owner] = []

    def found_warm() -> bool:
        owner = lock.owner()
        if owner is not None and owner.serves:
            served.append(owner)
        return bool(served)

    if lock.acquire(wait, stop=found_warm):
        return ClassicSession(connection, home, profile, lock=lock)
    owner = served[0]
    return ConnectSession(
        f"sc://localhost:{owner.port}/;token={owner.token};user_id={USER}", session_conf(connection), owner=owner
    )


class ClassicSession:
    """A Spark driver of our own: a JVM that this process starts and ends."""

    def __init__(self, connection: Connection, home: Path, profile: Profile, lock: CatalogLock | None) -> None:
        self._lock = lock
        self._catalog = connection.catalog
        try:
            _refuse_a_second()
            self._token = secrets.token_urlsafe(32) if connection.serves else ""
            conf = driver_conf(connection, home) | (serving_conf(self._token) if self._token else {})
            self._connection = connection
            config_dir = Path(connection.config_dir) if connection.config_dir else None
            keep_open = [lock.descriptor] if lock else []
            self.jvm = start_jvm(spark_folder(home), conf, profile, config_dir=config_dir, keep_open=keep_open)
            try:
                self.spark, self.gateway = _classic(self.jvm)
                if connection.catalog:
                    self.spark.catalog.setCurrentCatalog(connection.catalog)
            except BaseException as error:
                self.jvm.stop()
                _forget_gateway()
                if isinstance(error, MergeplanError) or not isinstance(error, Exception):
                    raise
                raise translated(error, "") from None
        except BaseException:
            if lock:
                lock.release()
            raise

    @property
    def isolated(self) -> bool:
        """True when functions in Python run in workers that are isolated."""
        return self.jvm.workers is not None

    @property
    def _scala(self) -> Any:
        return self.spark.sparkContext._jsc.sc()

    def observed(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        from pyspark.sql.functions import expr
        from pyspark.sql.observation import Observation

        observation = Observation()
        seen = frame.observe(observation, *(expr(sql).alias(name) for name, sql in aggregates.items()))
        return seen, lambda: observation.get

    def run_unlisted(self, sql: str) -> Frame:
        apart = self.spark.newSession()  # the setting must not reach what else this session does meanwhile
        apart.catalog.setCurrentCatalog(self.spark.catalog.currentCatalog())
        apart.conf.set(LISTED, "false")
        return apart.sql(sql)

    def enter(self, tag: str) -> None:
        self.spark.sparkContext.setJobGroup(tag, "mergeplan", interruptOnCancel=True)

    def interrupt(self, tag: str) -> None:
        self._scala.cancelJobGroupAndFutureJobs(tag)

    def scan_bytes(self, sql: str) -> int | None:
        with _listing_here(self.spark):
            frame: Any = self.spark.sql(sql)
            return plan_bytes(frame._jdf.queryExecution().optimizedPlan())

    def parsed(self, sql: str) -> str | None:
        session: Any = self.spark
        return str(session._jsparkSession.sessionState().sqlParser().parsePlan(sql).treeString())

    def jobs(self) -> int:
        return int(self._scala.dagScheduler().numTotalJobs())

    def apart(self) -> Session:
        other = copy(self)
        other.spark = self.spark.newSession()
        if self._catalog:
            other.spark.catalog.setCurrentCatalog(self._catalog)
        return other

    def let_go(self) -> None:
        with suppress(Exception):  # it ends with the Spark in any case
            for view in self.spark.catalog.listTables():
                if view.isTemporary:
                    self.spark.catalog.uncacheTable(view.name)
                    self.spark.catalog.dropTempView(view.name)

    def client_jobs(self, user: str, session: str, tag: str) -> int:
        """How many jobs a Connect client of this Spark has started under its tag."""
        java: Any = self.spark._jvm
        named = java.org.apache.spark.sql.connect.service.ExecuteSessionTag.apply(user, session, tag)
        self._scala.listenerBus().waitUntilEmpty()  # the books are kept by a thread of their own
        return len(self._scala.statusTracker().getJobIdsForTag(named))

    @property
    def token(self) -> str:
        """What a Spark Connect client must say to this Spark; '' when it serves none. Nobody else makes one."""
        return self._token

    def connect_port(self) -> int:
        """Where the Spark Connect server in this driver listens."""
        service = getattr(self.spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
        return int(getattr(service, "MODULE$").localPort())

    def server(self) -> Server:
        if not self._token:
            raise RequestError("this Spark was started without a door for other processes.")
        # By that name and no other pyspark sends a token without TLS.
        url = f"sc://localhost:{self.connect_port()}/;token={self._token};user_id={USER}"
        return Server(url, tuple(session_conf(self._connection).items()), self._connection.catalog, self.isolated)

    def close(self) -> None:
        try:
            with suppress(Exception):  # the JVM may be gone, and it is ended below in any case
                self.spark.stop()
            with suppress(Exception):
                self.gateway.shutdown()
            _forget_gateway()
            self.jvm.stop()
        finally:
            if self._lock:
                self._lock.release()


class ConnectSession:
    """A session on a Spark Connect server; `owner` is the warm Spark that it is, if it is one."""

    def __init__(
        self, remote: str, conf: Mapping[str, str], catalog: str | None = None, owner: Owner | None = None
    ) -> None:
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession as Connected

        self._owner, self._made_of = owner, (remote, conf, catalog, owner)
        self._server = Server(remote, tuple(conf.items()), catalog, owner is not None and owner.isolated)
        self._tag = f"mergeplan-{uuid4().hex}"
        self._stages: set[int] = set()
        where = "the warm Spark" if owner else remote.split("/;")[0]
        spark: Any = None
        try:
            spark = Connected.builder.remote(remote).create()
            # A server that restarts is waited for a moment; pyspark's own ten minutes look like a hang.
            spark.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=2000)])
            version = spark.version
        except Exception as error:
            if spark is not None:
                spark.client.close()  # otherwise it is tried again when this process ends
            raise SparkAway(f"{where} does not answer: {translated(error, '').message}") from None
        self.spark = spark
        try:
            for key, value in {**conf, "spark.sql.connect.serverStacktrace.enabled": "false"}.items():
                self._set(key, value)
            self._agree(where, conf)
            if catalog:
                spark.catalog.setCurrentCatalog(catalog)
        except RequestError:
            self.close()
            raise
        except Exception as error:
            self.close()
            why = translated(error, "").message
            raise RequestError(f"Spark {version} at {where} refuses this connection's settings: {why}") from None
        spark.registerProgressHandler(self._progressed)

    def apart(self) -> Session:
        return ConnectSession(*self._made_of)

    def let_go(self) -> None:
        self.close()

    def _set(self, key: str, value: str) -> None:
        try:
            self.spark.conf.set(key, value)
        except Exception as error:
            # A warm Spark was started with the settings that only a start can set.
            if self._owner is None or not (condition(error) or "").startswith("CANNOT_MODIFY"):
                raise

    def _agree(self, where: str, conf: Mapping[str, str]) -> None:
        """See that the session has the settings that the tables' versions speak of; RequestError when it has others.

        A warm Spark may have been started under other ones, which are put back.
        """
        wanted = {**DEFAULTS, **{key: value for key, value in conf.items() if key in DEFAULTS}}
        found = self._has(wanted)
        other = {key: value for key, value in found.items() if shaping({key: value}) != shaping({key: wanted[key]})}
        if self._owner is not None:
            for key in other:
                self._set(key, wanted[key])
            also = ((key, wanted[key]) for key in other)
            self._server = replace(self._server, conf=(*self._server.conf, *also))
        elif other:
            said = ", ".join(f"`{key}: {value}`" for key, value in sorted(other.items()))
            hint = "Write them into `config` of the gateway: they are a part of what a table's version stands for."
            raise RequestError(f"Spark at {where} has settings of which config.yaml does not speak: {said}.", hint=hint)

    def _has(self, keys: Iterable[str]) -> dict[str, str]:
        """What the session has of these settings, as far as the server knows them, asked at once."""
        from pyspark.sql.connect.proto.base_pb2 import ConfigRequest

        client: Any = self.spark.client
        asked = ConfigRequest.Operation(get_option=ConfigRequest.GetOption(keys=list(keys)))
        return {key: value for key, value in client.config(asked).pairs if value is not None}

    def _progressed(self, stages: Any, *_: Any, **__: Any) -> None:
        self._stages.update(stage.stage_id for stage in stages or ())

    def observed(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        from pyspark.sql.connect.functions import expr
        from pyspark.sql.connect.observation import Observation

        observation: Any = Observation()
        columns: Any = [expr(sql).alias(name) for name, sql in aggregates.items()]
        return frame.observe(observation, *columns), lambda: observation.get

    def run_unlisted(self, sql: str) -> Frame:
        apart: Any = self.spark.cloneSession()  # the setting must not reach what else this session does meanwhile
        try:
            apart.conf.set(LISTED, "false")
            created: Frame = apart.sql(sql)
            return created
        finally:
            apart.client.close()

    def enter(self, tag: str) -> None:
        self.spark.clearTags()
        self.spark.addTag(tag)
        self.spark.addTag(self._tag)

    def interrupt(self, tag: str) -> None:
        self.spark.interruptTag(tag)

    def scan_bytes(self, sql: str) -> int | None:
        with _listing_here(self.spark):
            return explained_bytes(self.spark.sql(f"EXPLAIN COST {sql}").collect()[0][0])

    def parsed(self, sql: str) -> str | None:
        from pyspark.errors import AnalysisException, ParseException

        try:
            _ = self.spark.sql(sql).schema
            with _listing_here(self.spark):
                told = str(self.spark.sql(f"EXPLAIN EXTENDED {sql}").collect()[0][0])
        except ParseException:
            raise
        except AnalysisException:
            return None
        return told.partition("\n== Analyzed Logical Plan ==")[0]

    def jobs(self) -> int:
        """Exact on a warm Spark, which counts; on another server, the stages it reported: none when no job ran."""
        if self._owner is None:
            return len(self._stages)
        with socket.create_connection(("127.0.0.1", self._owner.counter), timeout=30) as line:
            line.sendall(f"{self._owner.token} {USER} {self.spark.session_id} {self._tag}\n".encode())
            answer = line.makefile().readline()
        if not answer:
            raise QueryError("the warm Spark does not count this session's jobs.")
        return int(answer)

    def server(self) -> Server:
        return self._server

    def close(self) -> None:
        with suppress(Exception):  # a server that has gone has also let go
            self.spark.stop()


@contextmanager
def _listing_here(spark: SparkSession) -> Iterator[None]:
    """While it lasts the driver lists files by itself, however many folders there are."""
    with _listing_lock:
        before = spark.conf.get(LISTING)
        spark.conf.set(LISTING, str(2**31 - 1))
        try:
            yield
        finally:
            spark.conf.set(LISTING, str(before))


def _classic(jvm: Jvm) -> tuple[SparkSession, Any]:
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
        context = SparkContext(gateway=gateway)
        context.pythonExec = jvm.python
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)  # pyspark put its own there
        return SparkSession(context), gateway


def _refuse_a_second() -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise RequestError("this process has a Spark open already.", hint="Close that one first.")


def _forget_gateway() -> None:
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None


def silence() -> None:
    """pyspark logs every failed query as a line of JSON, and gRPC speaks up about forks; our errors say it all."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", module="pyspark")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
