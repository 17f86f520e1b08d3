"""A session of the real Spark Connect server, for one child with project code, with the gateway's settings."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mergeplan.planner.engine.protocol import Server
from mergeplan.planner.engine.spark.process.libraries import LIB

SERVICE = "spark.connect.SparkConnectService"
STARTING = 120.0  # seconds that a session of Spark may take to begin
ANSWERING = 600.0  # seconds that an answer without rows may take
AT_START = "CANNOT_MODIFY"  # what only Spark's start can set was set then
MUST = ("spark.sql.runSQLOnFiles", "spark.sql.variable.substitute")
USER = "mergeplan"


class ProxiedSession:
    def __init__(self, server: Server, session: str) -> None:
        builder = LIB.builder(server.url)
        self.user = builder.userId or USER
        self.number = ""  # of the session on the server's side: another of the same name would have no settings
        self._session, self._metadata = session, tuple(builder.metadata())
        self._channel = builder.toChannel()
        try:
            for key, value in server.conf:
                self._set_conf(key, value)
            self._set_conf("spark.sql.connect.serverStacktrace.enabled", "false")
            if server.catalog:
                plan = LIB.proto.Plan()
                plan.root.catalog.set_current_catalog.catalog_name = server.catalog
                self._run_plan(plan)
        except BaseException:
            self._channel.close()
            raise

    def make_view(self, name: str, sql: str) -> None:
        plan = LIB.proto.Plan()
        view = plan.command.create_dataframe_view
        view.name, view.replace, view.input.sql.query = name, True, sql
        self._run_plan(plan)

    def answer(self, method: str, request: Any, context: Any | None = None) -> bytes:
        """Return the answer to a request; to AddArtifacts, that to all of its requests."""
        open_call = self._channel.stream_unary if method == "AddArtifacts" else self._channel.unary_unary
        call = open_call(_method_path(method), request_serializer=bytes_of)
        future = call.future(request, timeout=ANSWERING, metadata=self._metadata)
        answer: bytes = self._cancel_with(future, context).result()
        return answer

    def answers(self, method: str, request: Any, context: Any) -> Iterator[bytes]:
        call = self._channel.unary_stream(_method_path(method), request_serializer=bytes_of)
        responses: Iterator[bytes] = self._cancel_with(call(request, metadata=self._metadata), context)
        return responses

    def close(self) -> None:
        request = LIB.proto.ReleaseSessionRequest(session_id=self._session)
        request.user_context.user_id = self.user
        with suppress(LIB.grpc.RpcError):  # a server that has gone has also let go
            call = self._channel.unary_unary(_method_path("ReleaseSession"), request_serializer=bytes_of)
            call(request, timeout=10, metadata=self._metadata)
        self._channel.close()

    def _cancel_with(self, call: Any, context: Any | None) -> Any:
        """Return the call, which is cancelled when the child no longer waits for it."""
        if context is not None and not context.add_callback(call.cancel):
            call.cancel()
        return call

    def _set_conf(self, key: str, value: str) -> None:
        request = LIB.proto.ConfigRequest(session_id=self._session)
        request.user_context.user_id = self.user
        request.operation.set.pairs.add(key=key, value=value)
        try:
            call = self._channel.unary_unary(_method_path("Config"), request_serializer=bytes_of)
            answer = call(request, timeout=STARTING, metadata=self._metadata)
        except LIB.grpc.RpcError as error:
            if key in MUST or not error_class(error).startswith(AT_START):
                raise
            return
        self.number = LIB.proto.ConfigResponse.FromString(answer).server_side_session_id

    def _run_plan(self, plan: Any) -> None:
        request = LIB.proto.ExecutePlanRequest(session_id=self._session, plan=plan)
        request.client_observed_server_side_session_id = self.number
        request.user_context.user_id = self.user
        call = self._channel.unary_stream(_method_path("ExecutePlan"), request_serializer=bytes_of)
        for _ in call(request, timeout=STARTING, metadata=self._metadata):
            pass


def error_class(error: Any) -> str:
    """Return Spark's error class of a failed call; '' if it gave none."""
    status = LIB.statuses.from_call(error)
    for detail in status.details if status is not None else ():
        info = LIB.error_info()
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
            return str(info.metadata.get("errorClass", ""))
    return ""


def _method_path(method: str) -> str:
    return f"/{SERVICE}/{method}"


def bytes_of(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
