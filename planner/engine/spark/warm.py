"""A warm Spark: holds the embedded catalog and serves it over Spark Connect to the other processes of this machine.

It is one Java process, started by and ending with the Python process that runs `serve_warm`. Beside Spark's own port
it answers one question that Spark Connect does not: how many jobs a client has started.
"""

from __future__ import annotations

import os
import secrets
import signal
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from planner.engine.protocol import Connection
from planner.engine.spark.catalog import WAIT, CatalogLock, Owner, command, is_embedded, spark_folder
from planner.engine.spark.classic_session import ClassicSession
from planner.engine.spark.java import profile_of
from planner.engine.spark.session import silence
from planner.errors import RequestError

SHARED = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.retainedJobs": "10000",  # as far back as jobs are counted
}


def serve_warm(
    home: Path,
    connection: Connection,
    *,
    profile: str = "backfill",
    wait: float = WAIT,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the embedded catalog until SIGTERM or SIGINT; one line is printed when it is ready."""
    if not is_embedded(connection):
        raise RequestError("only the embedded catalog can be kept warm.", hint="This connection brings its own.")
    silence()
    lock = CatalogLock(spark_folder(home))
    conf = {**dict(connection.conf), **SHARED}
    with _asked_to_stop() as stop:
        lock.acquire(wait)
        lock.publish(Owner(os.getpid(), command(), warm=True))
        serving = replace(connection, conf=tuple(conf.items()), serves=True)
        session = ClassicSession(serving, home, profile_of(profile), lock)
        try:
            with _counter(session) as counter:
                port = session.connect_port()
                ours = Owner(os.getpid(), command(), port, counter, session.token, warm=True, isolated=session.isolated)
                lock.publish(ours)
                say(f"warm Spark ready on 127.0.0.1:{port} (process {os.getpid()})")
                session.make_archive()  # it may run for weeks
                while not stop.wait(1.0):
                    if session.jvm.process.poll() is not None:
                        log = spark_folder(home) / "spark.log"
                        raise RequestError("the warm Spark ended by itself.", hint=f"What it said is in {log}.")
        finally:
            session.close()


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, while this lasts."""
    stop = threading.Event()
    signals = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _counter(session: ClassicSession) -> Iterator[int]:
    """A port that answers `token user session tag` with the number of jobs that Spark has started for these."""

    class WarmRequest(socketserver.StreamRequestHandler):
        timeout = 30

        def handle(self) -> None:
            asked, _, whose = self.rfile.readline(1000).decode().strip().partition(" ")
            if secrets.compare_digest(asked.encode(), session.token.encode()):
                self.wfile.write(f"{session.client_jobs(*whose.split())}\n".encode())

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
