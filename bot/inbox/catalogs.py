"""The catalog of what each prod shows, as the planner wrote it: a document, compressed."""

import zlib
from dataclasses import dataclass

import sqlalchemy as sa

from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.tables import CATALOGS
from mergeplan.planner.state.database import put_rows

LARGEST = 512 << 20  # bytes of a document


@dataclass(frozen=True)
class CatalogMark:
    """What a catalog was made of, and when, in seconds of the epoch."""

    mark: str = ""  # '' when there is none
    made_at: float = 0.0


NO_CATALOG = CatalogMark()


class Catalogs:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def mark(self, repository: str) -> CatalogMark:
        query = sa.select(CATALOGS.c.mark, CATALOGS.c.made_at).where(CATALOGS.c.repository == repository)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return CatalogMark(row.mark, row.made_at) if row else NO_CATALOG

    def load(self, repository: str) -> tuple[CatalogMark, bytes]:
        """Return the catalog's document; b'' when there is none."""
        query = sa.select(CATALOGS).where(CATALOGS.c.repository == repository)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return (CatalogMark(row.mark, row.made_at), _decompress_document(row.data)) if row else (NO_CATALOG, b"")

    def put(self, repository: str, mark: str, document: bytes) -> None:
        data = zlib.compress(document, 6)
        with self._database.writing() as connection:
            values = {"repository": repository, "mark": mark, "made_at": database_seconds(connection), "data": data}
            put_rows(connection, CATALOGS, [values])


def _decompress_document(data: bytes) -> bytes:
    """Return the document; b'' for one that grows too large, or is none."""
    try:
        unpacker = zlib.decompressobj()
        document = unpacker.decompress(data, LARGEST)
    except zlib.error:
        return b""
    return b"" if unpacker.unconsumed_tail else document
