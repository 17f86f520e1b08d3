"""The writes that a Spark Connect server continues when their client has gone, as one session knows them."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Protocol
from uuid import uuid4

from mergeplan.planner.engine.protocol import Operation
from mergeplan.planner.engine.spark.connect.reattach import Attaching
from mergeplan.planner.engine.spark.session import EngineSession
from mergeplan.planner.errors import RequestError

ENDING_SECONDS = 15.0  # for what was interrupted
LOOK_SECONDS = 1.0  # between two interrupts


class ClientSession(EngineSession, Protocol):
    """A session on a Spark Connect server; `attached` is another client's operation for which it was opened."""

    attached: Operation | None

    @property
    def address(self) -> str:
        """The server's address, without its token."""

    @property
    def session_id(self) -> str:
        """The id by which the server knows the session."""

    def end_attached(self) -> None: ...

    def has_attached_ended(self, seconds: float) -> bool:
        """Return True if the operation to which it is attached has ended, or ends within `seconds`."""


class ConnectOperations:
    """The operations of one session on a server; `open_attached` opens the session of another client's operation."""

    def __init__(
        self, session: ClientSession, attaching: Attaching, open_attached: Callable[[Operation], ClientSession]
    ) -> None:
        self.server = session.address
        self._session, self._attaching, self._open_attached = session, attaching, open_attached

    def new(self) -> Operation:
        return Operation(self.server, self._session.session_id, str(uuid4()))

    def writing(self, operation: Operation) -> AbstractContextManager[None]:
        return self._attaching.naming(operation.id, again=operation == self._session.attached)

    def attach(self, operation: Operation) -> EngineSession:
        """Return the session of another process's operation; raise RequestError if it can no longer be entered."""
        return self._open_attached(operation)

    def end(self, operation: Operation) -> None:
        """End an operation that another process began, and wait for its end.

        If the server does not answer, the operation is left.

        Spark interrupts a thread, and what the thread is about to execute may continue for a while. If its session were
        released meanwhile, the server would take it for closed and forget it.
        """
        if operation.server != self.server:
            return
        with suppress(RequestError):
            session, deadline = self._open_attached(operation), time.monotonic() + ENDING_SECONDS
            try:
                session.end_attached()
                while not session.has_attached_ended(LOOK_SECONDS) and time.monotonic() < deadline:
                    session.end_attached()
            finally:
                session.let_go()


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
