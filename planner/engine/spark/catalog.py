"""The embedded catalog: one folder with tables and metastore, held by one process, which may serve it to others.

Hive's embedded metastore admits a single process and reports that in ten thousand lines, so we lock the folder before
any Java starts. `owner.json` beside the lock names its holder, and where that listens if it is a warm Spark.
"""

import fcntl
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.errors import CatalogBusy, Refused
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.semantics.spark.spark_settings import TIME_ZONE, parse_properties

WAIT = 60.0  # seconds
WARM_WAIT = 600.0  # seconds for a warm Spark that is starting: what it takes on a busy machine, and not forever

# Settings with which a connection brings a catalog of its own.
FOREIGN = (
    "spark.hadoop.hive.metastore.uris", "spark.hive.metastore.uris", "spark.hadoop.javax.jdo.option.ConnectionURL",
    "spark.sql.catalogImplementation", "spark.sql.defaultCatalog",
)  # fmt: skip
METASTORE = FOREIGN[:3]


@dataclass(frozen=True)
class Owner:
    """Who holds the catalog; a warm Spark also says where it and its job counter listen, and what to say there."""

    pid: int
    command: str
    port: int = 0
    counter: int = 0
    token: str = ""
    warm: bool = False  # it will serve, or does
    isolated: bool = False  # its Python workers
    formats: tuple[str, ...] = ()  # of tables, that it was started with
    apart: tuple[str, ...] = ()  # those of catalogs of their own
    jars: str = ""  # a digest of where their jars come from

    @property
    def is_alive(self) -> bool:
        return is_process_alive(self.pid)

    @property
    def starting(self) -> bool:
        return self.warm and not self.port and self.is_alive

    @property
    def serves(self) -> bool:
        """True if a warm Spark answers on its port now."""
        return self.port > 0 and self.is_alive and _can_connect(self.port)


def spark_folder(home: Path) -> Path:
    return home.resolve() / "spark"


def is_embedded(connection: Connection) -> bool:
    """Return True if the tables are in our own catalog: the connection names no server and no metastore."""
    return not (connection.remote or connection.config_dir or connection.catalog) and not any(
        key in FOREIGN for key, _ in connection.conf
    )


class CatalogLock:
    """The right to open the embedded catalog: an flock on a file, held by this process and by the JVM it starts.

    The JVM inherits `descriptor`. When this process is killed, the JVM needs a moment to end, and the lock stays taken
    until then.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.descriptor = -1
        self._held = False

    @property
    def owner_path(self) -> Path:
        return self.folder / "owner.json"

    def acquire(self, wait: float = WAIT, stop: Callable[[], bool] = lambda: False) -> bool:
        """Take the lock within `wait` seconds, else raise CatalogBusy; return False as soon as `stop()` is True.

        Raise Refused in a copy of another folder, which would write and drop the tables of that one. A warm Spark that
        is starting is waited for beyond that time, since it can be shared.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path, place = self.folder / "place", str(self.folder)
        if path.exists() and (origin := path.read_text(encoding="utf-8")) != place:
            raise Refused(  # the catalog names files by their full path
                f"the files of the tables in {place} are in {origin}: this folder is a copy, or was moved.",
                hint="Use it there; or remove this folder and the state beside it, and plan again.",
            )
        self.descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        began = time.monotonic()
        while not self._try_lock():
            if stop():
                self.release()
                return False
            waited = time.monotonic() - began
            if waited >= wait and not (wait > 0 and waited < WARM_WAIT and self._is_warming()):
                self.release()
                raise CatalogBusy(
                    f"the tables in {self.folder} are in use by {self._holder_text()}.",
                    hint="Wait until it has ended, or share one Spark between processes with `mergeplan warm`.",
                )
            time.sleep(0.05)
        replace_file(path, place)
        self.publish(Owner(os.getpid(), command()))
        return True

    def publish(self, owner: Owner) -> None:
        """Write who holds the lock, readable by this user only: it includes a warm Spark's token."""
        replace_file(self.owner_path, json.dumps(asdict(owner)), private=True)

    def owner(self) -> Owner | None:
        try:
            return Owner(**json.loads(self.owner_path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def release(self) -> None:
        if self.descriptor < 0:
            return
        if self._held:
            self.owner_path.unlink(missing_ok=True)
        os.close(self.descriptor)
        self.descriptor, self._held = -1, False

    def _is_warming(self) -> bool:
        owner = self.owner()
        return owner is not None and owner.starting

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._held = True
        return True

    def _holder_text(self) -> str:
        owner = self.owner()
        if owner is None:
            return "another process"
        state = "" if is_process_alive(owner.pid) else ", which was killed and whose Java is still ending"
        return f"process {owner.pid} (`{owner.command}`{state})"


def session_conf(connection: Connection) -> dict[str, str]:
    """Return the settings of every session of ours, on any Spark."""
    return {
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.adaptive.enabled": "true",
        TIME_ZONE: _spark_defaults(None if connection.remote else connection.config_dir).get(TIME_ZONE, "UTC"),
        **dict(connection.conf),
        "spark.sql.runSQLOnFiles": "false",  # a query names tables; with this it could name any file of the machine
        "spark.sql.variable.substitute": "false",  # `${env:X}` and `${spark...}` in a text would be filled in
    }


def driver_conf(connection: Connection, home: Path) -> dict[str, str]:
    """Return the settings that our own Spark starts with; the connection's take precedence over ours."""
    master = connection.master or dict(connection.conf).get("spark.master", "local[*]")
    local = master.startswith("local")
    has_settings = bool(connection.config_dir) or any(key in METASTORE for key, _ in connection.conf)
    return {
        "spark.app.name": "mergeplan",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "hive" if has_settings or is_embedded(connection) else "in-memory",
        # A table that another session has pointed at new files must not be read from a remembered listing.
        "spark.sql.filesourceTableRelationCacheSize": "0",
        **({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if local else {}),
        **(_derby_conf(spark_folder(home)) if is_embedded(connection) else {}),
        **_spark_defaults(connection.config_dir),
        **session_conf(connection),
        "spark.master": master,
    }


def _derby_conf(folder: Path) -> Mapping[str, str]:
    return {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
        # An interrupted catalog call loses its connection for good, and a pool of eight of them is soon empty: the
        # next call waits for ever. Derby is in this process, so that a connection for each call costs nothing.
        "spark.hadoop.datanucleus.connectionPoolingType": "NONE",
        # Two processes that change and read partitions at once may lock each other out for a moment: the one that Derby
        # turns away asks for all partitions instead, and goes on.
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
        # One attempt: with none Hive does not even try, with its ten a broken catalog takes half a minute to fail.
        "spark.hadoop.hive.hmshandler.retry.attempts": "1",
        "spark.hadoop.hive.metastore.failure.retries": "0",
        # Else Hive gives every new folder the rights of the one above it: on a local disk that starts three processes
        # for each table, and the folders of its batches, which Spark makes, have those of the umask anyway.
        "spark.hadoop.hive.warehouse.subdir.inherit.perms": "false",
    }


def _spark_defaults(config_dir: str | None) -> dict[str, str]:
    path = Path(config_dir) / "spark-defaults.conf" if config_dir else None
    if path is None or not path.exists():
        return {}
    entries = parse_properties(path.read_text(encoding="utf-8"))
    return {key: value for key, (value, _) in entries.items() if value}


def command() -> str:
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return shlex.join([name, *sys.argv[1:]])[:200]


def is_process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _can_connect(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            return True
    except OSError:
        return False


def is_running(connection: Connection, home: Path) -> bool:
    """Return True if a connection's Spark runs already (a server, or a warm one), so that no process is started."""
    if connection.remote or not is_embedded(connection):
        return bool(connection.remote)
    return warm_owner(home) is not None


def warm_owner(home: Path) -> Owner | None:
    owner = CatalogLock(spark_folder(home)).owner()
    return owner if owner is not None and owner.serves else None
