"""The connection of project code to Spark: a Spark Connect server on a socket file that forwards admitted requests.

The address of the real server, its token and the settings of the session stay on this side. The session belongs to a
single child, which knows its id and nothing else.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from mergeplan.planner.engine.protocol import Reading, Server
from mergeplan.planner.engine.spark.connect.admission import (
    DEEPEST,
    Blocks,
    ReadScope,
    admit_request,
    function_of,
    view_of,
)
from mergeplan.planner.engine.spark.connect.proxied_session import SERVICE, ProxiedSession, bytes_of
from mergeplan.planner.engine.spark.process.libraries import LIB
from mergeplan.planner.errors import RequestError
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.queried_tables import NotAdmitted

LARGEST = 128 * 1024 * 1024  # bytes of one message, as pyspark and Spark have it
THREADS = 32  # requests at a time; each that is answered with rows holds one while it lasts
LONGEST_PATH = 100  # bytes of a socket's path; the system takes 107
Ask = Callable[[Any, Any], Any]
_depth_lock = threading.Lock()  # how deep may be read is a setting of the whole process


class Malformed(NotAdmitted):
    """Bytes that are no request at all."""


class ProjectProxy:
    """A connection to a Spark Connect server at a socket file; nothing passes before `admit`."""

    def __init__(self, server: Server, path: Path, *, python: bool, functions: frozenset[str] = frozenset()) -> None:
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise RequestError(f"the path of the socket {path} is too long.", hint="Set TMPDIR to a shorter folder.")
        self.session = str(uuid4())
        self._to, self._python = server, python or server.isolated
        self._scope = ReadScope(self.session)
        self._views: frozenset[str] = frozenset()  # of the session, that are there
        self._begun: dict[str, str] = {}  # operation -> temporary view, that is being made
        self._functions = functions  # that may be called beside Spark's own
        self._registering: dict[str, str] = {}  # operation -> function in Python
        self._left: list[str] = []  # global views that were let through since `admit`
        self._inputs: dict[str, str] = {}
        self._spark: ProxiedSession | None = None
        self._closed = False
        self._lock, self._beginning = threading.Lock(), threading.Lock()
        self._server = LIB.grpc.server(
            ThreadPoolExecutor(THREADS, thread_name_prefix="proxy"),
            handlers=[self._method_handlers()],
            options=[("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", LARGEST)],
            maximum_concurrent_rpcs=THREADS,
        )
        self._server.add_insecure_port(f"unix:{path}")
        os.chmod(path, 0o666)  # noqa: S103  # the child may have a user of its own; a client without a session gets nothing
        self._server.start()

    def admit(self, reading: Reading) -> None:
        catalog = (self._to.catalog or dict(self._to.conf).get("spark.sql.defaultCatalog") or SESSION_CATALOG).lower()
        names = frozenset(without_default(name.lower(), catalog) for name in (*reading.tables, *reading.inputs))
        with self._lock:
            self._left, self._inputs = [], dict(reading.inputs)
            self._scope = ReadScope(self.session, names, prefix=reading.prefix, python=self._python, catalog=catalog)

    def refuse(self) -> tuple[str, ...]:
        with self._lock:
            self._scope = ReadScope(self.session)
            return tuple(self._left)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed, self._scope = True, ReadScope(self.session)
            spark, self._spark = self._spark, None
        self._server.stop(grace=None)
        if spark is not None:
            spark.close()

    # Requests of pyspark

    def _method_handlers(self) -> Any:
        one, many = LIB.grpc.unary_unary_rpc_method_handler, LIB.grpc.unary_stream_rpc_method_handler
        return LIB.grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "ExecutePlan": many(self._wrap_handler(self._execute_plan, many=True)),
                "ReattachExecute": many(self._wrap_handler(self._reattach_execute, many=True)),
                "AnalyzePlan": one(self._wrap_handler(self._analyze_plan)),
                "Config": one(self._wrap_handler(self._unary_handler("Config", LIB.proto.ConfigRequest))),
                "Interrupt": one(self._wrap_handler(self._unary_handler("Interrupt", LIB.proto.InterruptRequest))),
                "ReleaseExecute": one(
                    self._wrap_handler(self._unary_handler("ReleaseExecute", LIB.proto.ReleaseExecuteRequest))
                ),
                "ArtifactStatus": one(
                    self._wrap_handler(self._unary_handler("ArtifactStatus", LIB.proto.ArtifactStatusesRequest))
                ),
                "FetchErrorDetails": one(self._wrap_handler(self._error_details)),
                "CloneSession": one(self._wrap_handler(self._refuse_clone)),
                "ReleaseSession": one(self._wrap_handler(self._release_session)),
                "AddArtifacts": LIB.grpc.stream_unary_rpc_method_handler(self._wrap_handler(self._add_artifacts)),
            },
        )

    def _wrap_handler(self, ask: Ask, *, many: bool = False) -> Ask:
        """Wrap a handler so that refusals and Spark's errors reach the child as pyspark expects them."""

        def one(request: Any, context: Any) -> Any:
            try:
                return ask(request, context)
            except Exception as error:
                return _abort_call(context, error)

        def all_of(request: Any, context: Any) -> Iterator[bytes]:
            try:
                yield from ask(request, context)
            except Exception as error:
                _abort_call(context, error)

        return all_of if many else one

    def _unary_handler(self, method: str, kind: Any) -> Ask:
        def ask(data: bytes, context: Any) -> bytes:
            return self._answer_unary(method, self._admit_request(kind, data), context)

        return ask

    def _execute_plan(self, data: bytes, context: Any) -> Iterator[bytes]:
        request = self._admit_request(LIB.proto.ExecutePlanRequest, data)
        view = view_of(request)
        if view is not None:
            with self._lock:
                if view.is_global:
                    self._left.append(f"global_temp.{view.name}")
                elif request.operation_id:
                    self._begun[request.operation_id] = view.name.lower()
        if (function := function_of(request)) and request.operation_id:
            with self._lock:
                self._registering[request.operation_id] = function
        return self._answer_stream("ExecutePlan", request, context)

    def _reattach_execute(self, data: bytes, context: Any) -> Iterator[bytes]:
        return self._answer_stream(
            "ReattachExecute", self._admit_request(LIB.proto.ReattachExecuteRequest, data), context
        )

    def _analyze_plan(self, data: bytes, context: Any) -> bytes:
        request = self._admit_request(LIB.proto.AnalyzePlanRequest, data)
        kind = request.WhichOneof("analyze")
        if kind not in ("persist", "unpersist", "get_storage_level"):
            return self._answer_unary("AnalyzePlan", request, context)
        # What Spark keeps in memory it keeps for all sessions, and after the model's end: rows are computed again.
        answer = LIB.proto.AnalyzePlanResponse(
            session_id=self.session, server_side_session_id=self._ready_session().number
        )
        getattr(answer, kind).SetInParent()
        return bytes_of(answer)

    def _release_session(self, data: bytes, context: Any) -> bytes:
        """Answer without a release: the session ends with the child, since a later one would have no settings."""
        self._admit_request(LIB.proto.ReleaseSessionRequest, data)
        number = self._ready_session().number
        return bytes_of(LIB.proto.ReleaseSessionResponse(session_id=self.session, server_side_session_id=number))

    def _refuse_clone(self, data: bytes, context: Any) -> bytes:
        raise NotAdmitted("A second session is not allowed to project code.")

    def _error_details(self, data: bytes, context: Any) -> bytes:
        request = self._admit_request(LIB.proto.FetchErrorDetailsRequest, data)
        details = LIB.proto.FetchErrorDetailsResponse.FromString(
            self._answer_unary("FetchErrorDetails", request, context)
        )
        for error in details.errors:
            error.ClearField("stack_trace")
        return bytes_of(details)

    def _add_artifacts(self, requests: Iterator[bytes], context: Any) -> bytes:
        wrong: list[Exception] = []

        def admit_requests() -> Iterator[Any]:
            blocks = Blocks()
            try:
                for data in requests:
                    request = self._admit_request(LIB.proto.AddArtifactsRequest, data)
                    blocks.admit(request)
                    yield request
            except Exception as error:
                wrong.append(error)
                raise

        try:
            return self._ready_session().answer("AddArtifacts", admit_requests(), context)
        except LIB.grpc.RpcError:
            if wrong:
                raise wrong[0] from None
            raise

    # Steps

    def _admit_request(self, kind: Any, data: bytes) -> Any:
        """Return the request as it may be forwarded, in this session's name; raise NotAdmitted if it is refused."""
        request = message_of(kind, data)
        with self._lock:
            scope = replace(self._scope, views=self._views, functions=self._functions)
        admit_request(request, scope)
        spark = self._ready_session()
        request.user_context.Clear()
        request.user_context.user_id = spark.user
        if "client_observed_server_side_session_id" in kind.DESCRIPTOR.fields_by_name:
            request.client_observed_server_side_session_id = spark.number
        return request

    def _ready_session(self) -> ProxiedSession:
        """Return the session, begun on first use, with the views that the model is given."""
        with self._beginning:
            spark = self._spark or self._begin_session()
            for name, sql in list(self._inputs.items()):
                spark.make_view(name, sql)
                self._inputs.pop(name, None)
            return spark

    def _begin_session(self) -> ProxiedSession:
        spark = None if self._closed else ProxiedSession(self._to, self.session)
        with self._lock:
            if spark is not None and not self._closed:
                self._spark = spark
                return spark
        if spark is not None:
            spark.close()
        raise NotAdmitted("This model has ended.")

    def _answer_unary(self, method: str, request: Any, context: Any) -> bytes:
        return self._ready_session().answer(method, request, context)

    def _answer_stream(self, method: str, request: Any, context: Any) -> Iterator[bytes]:
        for data in self._ready_session().answers(method, request, context):
            if request.operation_id in self._begun or request.operation_id in self._registering:
                self._record_creation(request.operation_id, data)
            yield data

    def _record_creation(self, operation: str, data: bytes) -> None:
        """Add a temporary view or function to the session's once it exists; before, its name was the catalog's."""
        if LIB.proto.ExecutePlanResponse.FromString(data).HasField("result_complete"):
            with self._lock:
                if operation in self._begun:
                    self._views |= {self._begun.pop(operation)}
                if operation in self._registering:
                    self._functions |= {self._registering.pop(operation)}


def _abort_call(context: Any, error: Exception) -> None:
    """End a request with its error; do not show a defect of ours to project code."""
    if isinstance(error, NotAdmitted):
        code = (
            LIB.grpc.StatusCode.INVALID_ARGUMENT
            if isinstance(error, Malformed)
            else LIB.grpc.StatusCode.PERMISSION_DENIED
        )
        status = LIB.status(code=code.value[0], message=str(error)[:1500])
    elif isinstance(error, LIB.grpc.RpcError) and hasattr(error, "code"):
        status = _without_trace(error)
    else:
        status = LIB.status(code=LIB.grpc.StatusCode.INTERNAL.value[0], message="The connection to Spark failed.")
    context.abort_with_status(LIB.statuses.to_status(status))


def _without_trace(error: Any) -> Any:
    status = LIB.statuses.from_call(error)
    if status is None:
        return LIB.status(code=error.code().value[0], message=(error.details() or "")[:1500])
    for detail in status.details:
        info = LIB.error_info()
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
            info.metadata.pop("stackTrace", None)
            detail.Pack(info)
    return status


def message_of(kind: Any, data: bytes) -> Any:
    """Return the message; raise NotAdmitted if bytes are none, nest too deeply, or hold an unknown field."""
    with _depth_lock:
        try:
            message = kind.FromString(data)
        except LIB.undecodable:
            message = _parse_deep(kind, data)
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise NotAdmitted("The request holds a field that this version of pyspark does not know.")
    return message


def _parse_deep(kind: Any, data: bytes) -> Any:
    """Parse a message that nests deeper than the default limit; measure it first, because the parser recurs."""
    if depth_of(kind.DESCRIPTOR, data) > DEEPEST:
        raise NotAdmitted("The plan is nested too deeply.")
    if LIB.reader is None:
        raise Malformed("The request cannot be read.")
    LIB.reader.SetAllowOversizeProtos(True)
    try:
        return kind.FromString(data)
    except LIB.undecodable:
        raise Malformed("The request cannot be read.") from None
    finally:
        LIB.reader.SetAllowOversizeProtos(False)


def depth_of(kind: Any, data: bytes) -> int:
    """Return how deeply the messages nest, at most one more than admitted; raise NotAdmitted for undecodable bytes."""
    waiting, deepest = [(0, len(data), kind, 1)], 0
    while waiting:
        at, end, kind, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > DEEPEST:
            break
        while at < end:
            key, at = _read_number(data, at, end)
            field, form = kind.fields_by_number.get(key >> 3), key & 7
            if form == 0:
                _, at = _read_number(data, at, end)
                continue
            size, at = _read_number(data, at, end) if form == 2 else ({1: 8, 5: 4}.get(form, end), at)
            if field is None or at + size > end:
                raise Malformed("The request cannot be read.")
            if form == 2 and field.message_type is not None:
                waiting.append((at, at + size, field.message_type, depth + 1))
            at += size
    return deepest


def _read_number(data: bytes, offset: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while offset < end and shift < 70:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return value, offset
    raise Malformed("The request cannot be read.")
