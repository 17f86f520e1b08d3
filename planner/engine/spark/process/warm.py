"""A warm Spark: holds the embedded catalog and serves it over Spark Connect to the other processes of this machine.

It is one Java process, started by and ending with the Python process that runs `serve_warm`. Beside Spark's own port
it answers two questions that Spark Connect does not: how many jobs a client has started, and whether two queries are
one plan.
"""

import os
import secrets
import signal
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import WAIT, CatalogLock, Owner, command, is_embedded, spark_folder
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.connect.comparing import LINE_MAX, WORD, answer_comparison
from mergeplan.planner.engine.spark.connect.local_analyzer import LocalAnalyzer
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.process import format_requests
from mergeplan.planner.engine.spark.process.format_settings import starting_conf, startup_formats
from mergeplan.planner.engine.spark.process.java import profile_of
from mergeplan.planner.engine.spark.session import silence_libraries
from mergeplan.planner.errors import MergeplanError, QueryError, RequestError

SHARED = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.retainedJobs": "10000",  # as far back as jobs are counted
}


Asked = tuple[Path, format_requests.FormatRequest]
EVERY = 30.0  # seconds between two queries
PATIENCE = 300.0  # seconds that an answer may take: a Spark short of memory or cores is slow, and may recover


@dataclass
class Pulse:
    """A check that Spark answers a new query now and then, in its own thread: one that hangs hangs no watcher."""

    ask: Callable[[], object]  # raises MergeplanError when Spark is gone or exhausted
    every: float = EVERY
    patience: float = PATIENCE
    _asked_at: float = field(default_factory=time.monotonic)
    _thread: threading.Thread | None = None
    _error: MergeplanError | None = None

    def check(self) -> None:
        """Ask again when it is time; raise RequestError if Spark failed the last query or leaves it unanswered."""
        if self._error is not None:
            raise RequestError(f"the warm Spark fails: {self._error.message}", hint=self._error.hint)
        waited = time.monotonic() - self._asked_at
        if self._thread is not None and self._thread.is_alive():
            if waited > self.patience:
                raise RequestError(f"the warm Spark has not answered for {waited:.0f} seconds.")
        elif waited >= self.every:
            self._asked_at = time.monotonic()
            self._thread = threading.Thread(target=self._ask_spark, name="pulse", daemon=True)
            self._thread.start()

    def _ask_spark(self) -> None:
        try:
            self.ask()
        except QueryError:
            pass  # it answers
        except MergeplanError as error:
            self._error = error


class _LentLock(CatalogLock):
    """The catalog's lock for a session of the warm Spark: the session ends, and the catalog stays locked."""

    def __init__(self, lock: CatalogLock) -> None:
        super().__init__(lock.folder)
        self.descriptor = lock.descriptor

    def release(self) -> None:
        """Do nothing: the lender releases the lock."""


def serve_warm(
    home: Path,
    connection: Connection,
    *,
    profile: str = "backfill",
    say: Callable[[str], None] = print,
) -> None:
    """Serve the embedded catalog until SIGTERM or SIGINT; print a line each time that it is ready.

    It restarts when a client needs a table format that it was not started with, as soon as no other client is left.
    """
    if not is_embedded(connection):
        raise RequestError("only the embedded catalog can be kept warm.", hint="This connection brings its own.")
    silence_libraries()
    lock = CatalogLock(spark_folder(home))
    # of a project; outside of one, what the last client needed
    project_request = format_requests.request_of(connection)
    with _stop_event() as stop:
        lock.acquire(WAIT)
        lock.publish(Owner(os.getpid(), command(), warm=True))
        try:
            current_connection = (
                connection
                if project_request != format_requests.FormatRequest()
                else format_requests.latest_accepted_request(lock.folder).extend_connection(connection)
            )
            try:
                session = _start_session(lock, current_connection, home, profile)
            except RequestError as error:
                if current_connection == connection:
                    raise
                say(f"Spark starts without the table formats of before: {error.message}")
                session, current_connection = _start_session(lock, connection, home, profile), connection
            while session_request := _serve_clients(session, lock, current_connection, home, stop, say):
                session, current_connection = _restart_session(lock, current_connection, session_request, home, profile)
        finally:
            lock.release()


def _start_session(lock: CatalogLock, connection: Connection, home: Path, profile: str) -> ClassicSession:
    conf = {**dict(connection.conf), **SHARED}
    serving = replace(connection, conf=tuple(conf.items()), serves=True)
    return ClassicSession(serving, home, profile_of(profile), _LentLock(lock))


def _restart_session(
    lock: CatalogLock, connection: Connection, session_request: Asked, home: Path, profile: str
) -> tuple[ClassicSession, Connection]:
    """Return a session with what a client requested; if that fails, refuse the request and start as before."""
    path, request = session_request
    extended_connection = request.extend_connection(connection)
    try:
        session = _start_session(lock, extended_connection, home, profile)
    except RequestError as error:
        format_requests.refuse_request(path, error)
        return _start_session(lock, connection, home, profile), connection
    format_requests.accept_request(lock.folder, path, request)
    return session, extended_connection


def _serve_clients(
    session: ClassicSession,
    lock: CatalogLock,
    connection: Connection,
    home: Path,
    stop: threading.Event,
    say: Callable[[str], None],
) -> Asked | None:
    """Serve until a client needs another start and no other is left, or a stop (None); then close the session."""
    pulse = Pulse(lambda: SparkEngine(session).schema(f"SELECT {time.monotonic_ns()} AS now"))
    analyzer = LocalAnalyzer()
    try:
        with _serve_counter(session, analyzer) as counter:
            owner = Owner(
                os.getpid(), command(), session.serving.port, counter, session.serving.token, warm=True,
                isolated=session.is_isolated, formats=startup_formats(connection, home), apart=connection.apart,
                jars=format_requests.jars_of(connection),
            )  # fmt: skip
            lock.publish(owner)
            reason = session.jvm.open_reason
            confined = f"not confined: {reason}" if reason else "confined"
            say(f"warm Spark ready on 127.0.0.1:{owner.port} (process {os.getpid()}), {confined}")
            session.make_archive()  # it may run for weeks
            while not stop.wait(1.0):
                _see_that_it_runs(session, home)
                pulse.check()
                analyzer.close_idle()
                if session_request := _next_request(lock, connection, home):
                    lock.publish(replace(owner, port=0))  # from here on no client is admitted
                    if _wait_until_idle(session, lock, session_request[0], home, stop):
                        return session_request
                    lock.publish(owner)
    finally:
        analyzer.close()
        session.close()
    return None


def _next_request(lock: CatalogLock, connection: Connection, home: Path) -> Asked | None:
    """Return the next request that a start may fulfil; refuse one whose settings alone make that impossible."""
    session_request = format_requests.next_request(lock.folder)
    if session_request is None:
        return None
    try:
        starting_conf(session_request[1].extend_connection(connection), home)
    except RequestError as error:
        format_requests.refuse_request(session_request[0], error)
        return None
    return session_request


def _wait_until_idle(session: ClassicSession, lock: CatalogLock, path: Path, home: Path, stop: threading.Event) -> bool:
    """Wait until no client is left; return False on a stop, or if no process waits for the new start any more."""
    while not format_requests.is_empty(lock.folder):
        _see_that_it_runs(session, home)
        if stop.wait(0.2) or not format_requests.is_waited_for(path):
            return False
    return True


def _see_that_it_runs(session: ClassicSession, home: Path) -> None:
    if session.jvm.process.poll() is not None:
        log = spark_folder(home) / "spark.log"
        raise RequestError("the warm Spark ended by itself.", hint=f"Its output is in {log}.")


@contextmanager
def _stop_event() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set within the context."""
    stop = threading.Event()
    signals = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    former_handlers = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _serve_counter(session: ClassicSession, analyzer: LocalAnalyzer) -> Iterator[int]:
    """Yield a port that answers how many jobs a client has started, and what Spark says of two plans.

    `token user session tag` is answered with the number of jobs that Spark has started for these. `token compare` and
    two queries, as JSON, are answered with Spark's verdict on their plans.
    """

    class WarmRequest(socketserver.StreamRequestHandler):
        timeout = 30

        def handle(self) -> None:
            token = self.rfile.read(len(session.serving.token))  # before anything that is longer is read
            if not secrets.compare_digest(token, session.serving.token.encode()):
                return
            first_word, _, request = self.rfile.readline(LINE_MAX).decode().strip().partition(" ")
            answer = (
                answer_comparison(analyzer, request)
                if first_word == WORD
                else str(session.serving.client_jobs(first_word, *request.split()))
            )
            self.wfile.write(f"{answer}\n".encode())

    class WarmServer(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with WarmServer(("127.0.0.1", 0), WarmRequest) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
