"""The session that a connection names: of a Spark of our own, of a warm one, or of a server."""

from functools import partial
from pathlib import Path

from mergeplan.planner.engine.protocol import Connection, Server
from mergeplan.planner.engine.spark import catalog
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.connect.connect_session import ConnectSession, without_token
from mergeplan.planner.engine.spark.process.connect_server import local_url
from mergeplan.planner.engine.spark.process.format_requests import Visit, lacks_formats, request_formats
from mergeplan.planner.engine.spark.process.format_settings import SIGNS, check_formats
from mergeplan.planner.engine.spark.process.java import Profile
from mergeplan.planner.engine.spark.session import EngineSession, silence_libraries
from mergeplan.planner.errors import RequestError


def starts_again(connection: Connection, home: Path) -> bool:
    """Return True if a warm Spark has to restart before it can serve this connection: it lacks a table format."""
    owner = None if connection.remote or not catalog.is_embedded(connection) else catalog.warm_owner(home)
    return owner is not None and lacks_formats(owner, connection)


def open_session(connection: Connection, home: Path, profile: Profile, wait: float = catalog.WAIT) -> EngineSession:
    """Open the Spark that a connection names; for the embedded catalog a warm one if it runs, else our own."""
    silence_libraries()
    if connection.remote:
        return _connect_session(connection, connection.remote)
    if not catalog.is_embedded(connection):
        return ClassicSession(connection, home, profile, lock=None)
    lock = catalog.CatalogLock(catalog.spark_folder(home))
    while True:
        served: list[catalog.Owner] = []
        if lock.acquire(wait, stop=partial(_is_served, lock, served)):
            return ClassicSession(connection, home, profile, lock=lock)
        if session := _warm_session(connection, lock, served[0]):
            return session


def _is_served(lock: catalog.CatalogLock, owners: list[catalog.Owner]) -> bool:
    owner = lock.owner()
    if owner is not None and owner.serves:
        owners.append(owner)
    return bool(owners)


def _warm_session(connection: Connection, lock: catalog.CatalogLock, owner: catalog.Owner) -> EngineSession | None:
    """Return a session on the warm Spark; None if that has restarted for the connection or is about to."""
    visit: Visit | None = Visit(lock.folder)
    try:
        if lock.owner() != owner:
            return None
        if not lacks_formats(owner, connection):
            url, conf = local_url(owner.port, owner.token), tuple(catalog.session_conf(connection).items())
            server = Server(url, conf, isolated=owner.isolated)
            session = ConnectSession(server, owner, visit)
            visit = None
            return session
    finally:
        if visit:
            visit.close()
    request_formats(lock.folder, owner, connection)
    return None


def _connect_session(connection: Connection, remote: str) -> EngineSession:
    """Open a session on a Spark Connect server; raise RequestError if it lacks a format that the tables need."""
    session = ConnectSession(Server(remote, tuple(catalog.session_conf(connection).items()), connection.catalog))
    if connection.formats:
        try:
            check_formats(connection.formats, session.read_conf(SIGNS), without_token(remote))
        except RequestError:
            session.close()
            raise
    return session
