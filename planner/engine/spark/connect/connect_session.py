"""A session on a Spark Connect server, which may be the warm Spark of this machine.

A server, unlike the warm Spark, continues writes when their client has gone.
"""

from __future__ import annotations

import atexit
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.protocol import Operation, Server
from mergeplan.planner.engine.spark.catalog import Owner
from mergeplan.planner.engine.spark.connect.comparing import ask_to_compare
from mergeplan.planner.engine.spark.connect.local_analyzer import LocalAnalyzer
from mergeplan.planner.engine.spark.connect.reattach import Attaching
from mergeplan.planner.engine.spark.errors import LACKS, condition, translate_error
from mergeplan.planner.engine.spark.process.format_requests import Visit
from mergeplan.planner.engine.spark.process.libraries import LIB
from mergeplan.planner.engine.spark.scans import parse_plan_bytes
from mergeplan.planner.engine.spark.session import LISTED, USER, EngineSession, Frame, listing_here, trace_id
from mergeplan.planner.errors import QueryError, RequestError, SparkUnavailable
from mergeplan.planner.semantics.spark.spark_settings import DEFAULTS, result_settings

OF_QUERIES = re.compile(r"spark\.sql\.(?!catalog)")  # settings that shape a plan; those of catalogs may hold secrets
ENDING_SECONDS = 15.0  # for what was interrupted
LOOK_SECONDS = 1.0  # between two interrupts


def without_token(remote: str) -> str:
    """Return a Spark Connect address without its parameters, which may hold a token."""
    return remote.partition(";")[0].rstrip("/")


class ConnectSession:
    """A session on a Spark Connect server; `visit` keeps the warm Spark `owner`, if it is one, from restarting.

    `operation` is another client's, for which the session is opened.
    """

    def __init__(
        self, server: Server, owner: Owner | None = None, visit: Visit | None = None, operation: Operation | None = None
    ) -> None:
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession as Connected

        self._server, self._owner, self._visit = server, owner, visit
        self._local = LocalAnalyzer()
        self._tag = f"mergeplan-{uuid4().hex}"
        self.attached, self._attaching = operation, Attaching()
        self._stages: set[int] = set()
        where = "the warm Spark" if owner else without_token(server.url)
        spark: Any = None
        try:
            address = session_url(server.url, operation.session) if operation else server.url
            spark = Connected.builder.channelBuilder(self._attaching.channel(address)).create()
            # A server that restarts is waited for a moment; pyspark's own ten minutes look like a hang.
            spark.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=2000)])
            version = spark.version
        except Exception as error:
            if spark is not None:
                close_channel(spark)  # otherwise it is tried again when this process ends
            reason = translate_error(error, "")
            state = "cannot be used" if reason.message.startswith(LACKS) else "does not answer"
            raise SparkUnavailable(f"{where} {state}: {reason.message}", hint=reason.hint) from None
        self.spark = spark
        try:
            for key, value in {**dict(server.conf), "spark.sql.connect.serverStacktrace.enabled": "false"}.items():
                self._set_conf(key, value)
            if operation is None:  # what runs there began in agreement, and a format may have set more since
                self._check_settings(where, dict(server.conf))
            if server.catalog:
                spark.catalog.setCurrentCatalog(server.catalog)
        except RequestError:
            self.close()
            raise
        except Exception as error:
            self.close()
            refusal = translate_error(error, "").message
            raise RequestError(f"Spark {version} at {where} refuses this connection's settings: {refusal}") from None
        spark.registerProgressHandler(self._record_stages)

    @property
    def operations(self) -> ConnectOperations | None:
        if self._owner is not None:
            return None  # the warm Spark restarts when its clients have gone
        return ConnectOperations(self, self._attaching)

    @property
    def has_ended(self) -> bool:
        """True if the warm Spark is gone; for another server only an answer tells."""
        return self._owner is not None and not self._owner.is_alive

    @property
    def address(self) -> str:
        """The server's address, without its token."""
        return without_token(self._server.url)

    @property
    def session_id(self) -> str:
        return str(self.spark.session_id)

    def end_attached(self) -> None:
        if self.attached:
            with suppress(Exception):  # a server that has gone has ended it
                self.spark.interruptOperation(self.attached.id)

    def has_attached_ended(self, seconds: float) -> bool:
        """Return True if the operation to which it is attached has ended, or ends within `seconds`."""
        client: Any = self.spark.client
        request = LIB.proto.ReattachExecuteRequest(session_id=self.session_id)
        request.user_context.user_id = client._user_id or ""
        request.operation_id = self.attached.id if self.attached else ""
        try:
            for _ in client._stub.ReattachExecute(request, metadata=client._builder.metadata(), timeout=seconds):
                pass
        except LIB.grpc.RpcError as error:  # it was ended, or is not known any more
            return bool(error.code() != LIB.grpc.StatusCode.DEADLINE_EXCEEDED)
        return True

    def new_session(self) -> EngineSession:
        return ConnectSession(self._server, self._owner)

    def let_go(self) -> None:
        self.close()

    def _set_conf(self, key: str, value: str) -> None:
        try:
            self.spark.conf.set(key, value)
        except Exception as error:
            # A warm Spark was started with the settings that only a start can set.
            if self._owner is None or not (condition(error) or "").startswith("CANNOT_MODIFY"):
                raise

    def _check_settings(self, where: str, conf: Mapping[str, str]) -> None:
        """Raise RequestError if the session lacks the settings that the tables' versions depend on.

        A warm Spark may have been started with other settings, which are reset here.
        """
        expected_conf = {**DEFAULTS, **{key: value for key, value in conf.items() if key in DEFAULTS}}
        actual_conf = self.read_conf(expected_conf)
        differing_conf = {
            key: value
            for key, value in actual_conf.items()
            if result_settings({key: value}) != result_settings({key: expected_conf[key]})
        }
        if self._owner is not None:
            for key in differing_conf:
                self._set_conf(key, expected_conf[key])
            also = ((key, expected_conf[key]) for key in differing_conf)
            self._server = replace(self._server, conf=(*self._server.conf, *also))
        elif differing_conf:
            listed = ", ".join(f"`{key}: {value}`" for key, value in sorted(differing_conf.items()))
            hint = "Write them into `config` of the gateway: the versions of tables depend on them."
            raise RequestError(f"Spark at {where} has settings that config.yaml does not have: {listed}.", hint=hint)

    def read_conf(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the session's values of these settings, as far as the server knows them, by one request."""
        from pyspark.sql.connect.proto.base_pb2 import ConfigRequest

        client: Any = self.spark.client
        operation = ConfigRequest.Operation(get_option=ConfigRequest.GetOption(keys=list(keys)))
        return {key: value for key, value in client.config(operation).pairs if value is not None}

    def _record_stages(self, stages: Any, *_: Any, **__: Any) -> None:
        self._stages.update(stage.stage_id for stage in stages or ())

    def sql(self, text: str) -> Frame:
        frame: Frame = self.spark.sql(text)
        return frame

    def observe(self, frame: Frame, **aggregates: str) -> tuple[Frame, Callable[[], dict[str, Any]]]:
        from pyspark.sql.connect.functions import expr
        from pyspark.sql.connect.observation import Observation

        name = self._attaching.name
        observation: Any = Observation(f"mergeplan-{name}") if name else Observation()  # the first client's name
        columns: Any = [expr(sql).alias(name) for name, sql in aggregates.items()]

        # The server waits 100 ms for the values after a write: a busy one reports none.
        return frame.observe(observation, *columns), lambda: observation.get

    def condition(self, sql: str) -> Any:
        from pyspark.sql.connect.functions import expr

        return expr(sql)

    def run_unlisted(self, sql: str) -> Frame:
        apart: Any = self.spark.cloneSession()  # the setting must not reach what else this session does meanwhile
        try:
            apart.conf.set(LISTED, "false")
            created: Frame = apart.sql(sql)
            return created
        finally:
            close_channel(apart)

    def enter(self, tag: str) -> None:
        self.spark.clearTags()
        self.spark.addTag(tag)
        self.spark.addTag(self._tag)
        if trace := trace_id(os.environ):
            self.spark.addTag(f"trace-{trace}")

    def interrupt(self, tag: str) -> None:
        self.spark.interruptTag(tag)
        self.end_attached()

    def scan_bytes(self, sql: str) -> int | None:
        with listing_here(self.spark):
            return parse_plan_bytes(self.spark.sql(f"EXPLAIN COST {sql}").collect()[0][0])

    def parse_tree(self, sql: str) -> str | None:
        from pyspark.errors import AnalysisException, ParseException

        try:
            frame = self.spark.sql(sql)
            _ = frame.schema
            return self.frame_tree(frame, sql)
        except ParseException:
            raise
        except AnalysisException:
            return None

    def frame_tree(self, frame: Frame, sql: str) -> str:
        with listing_here(self.spark):
            explained = str(self.spark.sql(f"EXPLAIN EXTENDED {sql}").collect()[0][0])
        return explained.partition("\n== Analyzed Logical Plan ==")[0]

    def compare_queries(self, analysis: Analysis, *, may_start: bool = True) -> tuple[PairResult, ...] | None:
        settings = tuple(pair for pair in self._server.conf if OF_QUERIES.match(pair[0]))
        analysis = replace(analysis, settings=settings)
        if self._owner is not None:
            return ask_to_compare(self._owner, analysis)
        return self._local.compare_queries(analysis) if may_start else None

    def location(self, table: str, unless: str) -> None:
        """Return None: a server is queried by statements only."""

    def jobs(self) -> int:
        """Return the exact number on a warm Spark; else that of the reported stages, which is 0 if no job ran."""
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
            # Other operations of the session's first client may be waited for too.
            if not self.attached:
                self.spark.stop()
            close_channel(self.spark)
        self._local.close()
        if self._visit:
            self._visit.close()


class ConnectOperations:
    """The writes that a server continues when their client has gone, as one session knows them."""

    def __init__(self, session: ConnectSession, attaching: Attaching) -> None:
        self.server, self._session, self._attaching = session.address, session, attaching

    def new(self) -> Operation:
        return Operation(self.server, self._session.session_id, str(uuid4()))

    def writing(self, operation: Operation) -> AbstractContextManager[None]:
        return self._attaching.naming(operation.id, again=operation == self._session.attached)

    def attach(self, operation: Operation) -> ConnectSession:
        """Return the session of another process's operation; raise RequestError if it can no longer be entered."""
        return ConnectSession(self._session.server(), operation=operation)

    def end(self, operation: Operation) -> None:
        """End an operation that another process began, and wait for its end.

        If the server does not answer, the operation is left.

        Spark interrupts a thread, and what the thread is about to execute may continue for a while. If its session were
        released meanwhile, the server would take it for closed and forget it.
        """
        if operation.server != self.server:
            return
        with suppress(RequestError):
            session, deadline = self.attach(operation), time.monotonic() + ENDING_SECONDS
            try:
                session.end_attached()
                while not session.has_attached_ended(LOOK_SECONDS) and time.monotonic() < deadline:
                    session.end_attached()
            finally:
                session.let_go()


def close_channel(spark: Any) -> None:
    """Close a session's channel once and for all, and let Python collect the session.

    pyspark keeps each client until the process ends, to ask its server once more then. It also closes the channel when
    Python collects the session. That may happen while a thread hands a task to the pool of threads that closing shuts
    down. The thread would then wait for ever for a lock that it holds itself.
    """
    atexit.unregister(spark.client._cleanup_ml_cache)
    try:
        spark.client.close()
    finally:
        spark.client.close = lambda: None


def session_url(remote: str, session: str) -> str:
    """Return the address of one session of a Spark Connect server.

    >>> session_url("sc://spark:443/;use_ssl=true", "4f"), session_url("sc://spark", "4f")
    ('sc://spark:443/;use_ssl=true;session_id=4f', 'sc://spark/;session_id=4f')
    """
    address, _, url_parameters = remote.partition("/;")
    parameters = [
        parameter for parameter in url_parameters.split(";") if parameter and not parameter.startswith("session_id=")
    ]
    return f"{address.rstrip('/')}/;{';'.join([*parameters, f'session_id={session}'])}"
