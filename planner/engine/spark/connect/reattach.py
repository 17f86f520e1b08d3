"""Writes on a Spark Connect server that continue without their client: named before they begin, and found by name.

A server retains an operation whose client has gone, with all its answers, until a client attaches to it again (five
minutes by default, `spark.connect.execute.manager.detachedTimeout`). pyspark attaches again when its connection breaks;
here another process does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mergeplan.planner.engine.protocol import OperationGone
from mergeplan.planner.engine.spark.process.libraries import LIB

EXECUTE, RELEASE = (f"/spark.connect.SparkConnectService/{name}" for name in ("ExecutePlan", "ReleaseExecute"))
WRITES = ("write_operation", "write_operation_v2")


@dataclass
class _Named:
    """The operation of a thread's next write; `again` if it began elsewhere and is only waited for."""

    id: str
    again: bool
    begun: bool = False


@dataclass(frozen=True)
class _Answered:
    """The result of a call that was not sent."""

    answer: Any

    def result(self, timeout: float | None = None) -> Any:
        return self.answer


class Attaching:
    """An interceptor of gRPC between one client and its server, which gives writes their operation ids."""

    def __init__(self) -> None:
        self._thread = threading.local()
        self._kept: set[str] = set()

    def __deepcopy__(self, _: object) -> Attaching:
        """Return an interceptor without names, for a clone of the session: pyspark copies the channel's builder."""
        return Attaching()

    def channel(self, remote: str) -> Any:
        for kind in (LIB.grpc.UnaryStreamClientInterceptor, LIB.grpc.UnaryUnaryClientInterceptor):
            kind.register(Attaching)
        builder = LIB.builder(remote)
        builder.add_interceptor(self)
        return builder

    @property
    def name(self) -> str:
        """The operation id of this thread's next write; '' for none."""
        named: _Named | None = getattr(self._thread, "named", None)
        return named.id if named else ""

    @contextmanager
    def naming(self, operation: str, *, again: bool) -> Iterator[None]:
        """Make this thread's next write that operation; `again` waits for it, and raises OperationGone if unknown."""
        self._thread.named = _Named(operation, again)
        self._kept.add(operation)
        try:
            yield
        finally:
            self._thread.named = None
            self._kept.discard(operation)

    def intercept_unary_stream(self, continuation: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        """Send a thread's first write as its operation, or do not send it.

        A write that is only waited for is not sent: an answer that ends too early makes pyspark attach again. Raise
        OperationGone if pyspark found no such operation.
        """
        named: _Named | None = getattr(self._thread, "named", None)
        if named is None or details.method != EXECUTE or not _is_write(request):
            return continuation(details, request)
        if named.again and request.operation_id == named.id:
            raise OperationGone  # pyspark found no such operation, and would begin it now
        if not named.begun:
            named.begun = True
            request.operation_id = named.id
            if named.again:
                return iter(())
        return continuation(details, request)

    def intercept_unary_unary(self, continuation: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        """Let the server retain all answers of an operation: a client that attaches later has received none."""
        is_kept = details.method == RELEASE and request.HasField("release_until")
        if is_kept and request.operation_id in self._kept:
            return _Answered(LIB.proto.ReleaseExecuteResponse())
        return continuation(details, request)


def _is_write(request: Any) -> bool:
    return request.plan.HasField("command") and request.plan.command.WhichOneof("command_type") in WRITES
