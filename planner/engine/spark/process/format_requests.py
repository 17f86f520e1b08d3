"""Table formats that a client needs and the warm Spark lacks: a file requests them, a restart adds them.

A Spark learns a table format only when it starts. A client that finds the warm Spark without one asks for it. The warm
Spark then admits no new client, waits until its other clients have left, and restarts. The requests, the answer for the
next start, and the lock that counts clients are stored beside the catalog's lock.
"""

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import WARM_WAIT, Owner, is_process_alive
from mergeplan.planner.errors import CatalogBusy, RequestError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.replace_file import replace_file

# The settings for the origin of jars; all others of a connection are set in each session.
JAR_SETTINGS = ("spark.jars", "spark.sql.extensions", "spark.driver.extraJavaOptions")
Conf = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FormatRequest:
    """The table formats that a connection needs, and where their jars come from."""

    formats: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    jars_dir: str | None = None
    conf: Conf = ()

    def extend_connection(self, connection: Connection) -> Connection:
        """Return the connection with these formats besides its own, and with their jars from this request."""
        conf = {key: value for key, value in connection.conf if not key.startswith(JAR_SETTINGS)} | dict(self.conf)
        return replace(
            connection,
            formats=tuple(sorted({*connection.formats, *self.formats})),
            apart=tuple(sorted({*connection.apart, *self.apart})),
            jars_dir=self.jars_dir,
            conf=tuple(conf.items()),
        )


def request_of(connection: Connection) -> FormatRequest:
    conf = tuple(sorted((key, value) for key, value in connection.conf if key.startswith(JAR_SETTINGS)))
    return FormatRequest(connection.formats, connection.apart, connection.jars_dir, conf)


def jars_of(connection: Connection) -> str:
    request = request_of(connection)
    return digest(json.dumps([request.jars_dir, request.conf]))


def lacks_formats(owner: Owner, connection: Connection) -> bool:
    """Return True if a warm Spark was started without a format that a connection needs, or with other jars."""
    if not (connection.formats or connection.apart):
        return False
    has_formats = set(connection.formats) <= set(owner.formats) and set(connection.apart) <= set(owner.apart)
    return not has_formats or owner.jars != jars_of(connection)


def request_formats(folder: Path, owner: Owner, connection: Connection, wait: float = WARM_WAIT) -> None:
    """Ask the warm Spark for the connection's formats, and wait until it restarted with them, or died.

    Raise RequestError with its reason if it refuses. Raise CatalogBusy if its other clients do not leave in `wait`
    seconds.
    """
    path = _requests_folder(folder) / f"{time.time_ns():020}-{os.getpid()}-{uuid4().hex}.json"
    replace_file(
        path, json.dumps(asdict(request_of(connection))), private=True
    )  # a proxy's password may be among the settings
    until = time.monotonic() + wait
    while path.exists() and owner.is_alive:
        if time.monotonic() > until:
            path.unlink(missing_ok=True)
            names = " and ".join(sorted({*connection.formats, *connection.apart}))
            raise CatalogBusy(
                f"the warm Spark has to start again for tables of {names}, and others still use it.",
                hint="Wait until they have ended.",
            )
        time.sleep(0.1)
    path.unlink(missing_ok=True)
    refused = path.with_suffix(".refused")
    if refused.exists():
        message, hint = json.loads(refused.read_text("utf-8"))
        refused.unlink()
        raise RequestError(message, hint=hint)


def is_waited_for(path: Path) -> bool:
    return path.exists() and is_process_alive(int(path.name.split("-")[1]))


def next_request(folder: Path) -> tuple[Path, FormatRequest] | None:
    """Return the oldest request with its file; remove unreadable ones and those of killed processes."""
    for path in sorted(_requests_folder(folder).glob("*-*-*.json")):
        request = _read_request(path)
        if request and is_waited_for(path):
            return path, request
        path.unlink(missing_ok=True)
    return None


def accept_request(folder: Path, path: Path, request: FormatRequest) -> None:
    """Accept a request: the warm Spark has the formats now, and starts with them from here on."""
    replace_file(folder / "warm_formats.json", json.dumps(asdict(request)), private=True)
    path.unlink(missing_ok=True)


def refuse_request(path: Path, error: RequestError) -> None:
    if path.exists():
        replace_file(path.with_suffix(".refused"), json.dumps([error.message, error.hint]), private=True)
        path.unlink(missing_ok=True)


def latest_accepted_request(folder: Path) -> FormatRequest:
    return _read_request(folder / "warm_formats.json") or FormatRequest()


class Visit:
    """A client's stay at the warm Spark, which restarts only without clients; it ends with the process."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / "clients", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        """End the stay; a second call does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def is_empty(folder: Path) -> bool:
    """Return True if no client is at the warm Spark; one that comes now finds it closed, and leaves."""
    descriptor = os.open(folder / "clients", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _requests_folder(folder: Path) -> Path:
    folder_path = folder / "format_requests"
    folder_path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder_path


def _read_request(path: Path) -> FormatRequest | None:
    try:
        document = json.loads(path.read_text("utf-8"))
        conf = tuple((str(key), str(value)) for key, value in document["conf"])
        return FormatRequest(tuple(document["formats"]), tuple(document["apart"]), document["jars_dir"], conf)
    except (OSError, ValueError, TypeError, KeyError):
        return None
