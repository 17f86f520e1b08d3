"""What each project publishes of its prod: its views, and who in it reads which tables of others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa
from pydantic import TypeAdapter

from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.tables import PUBLICATIONS, READS
from mergeplan.bot.readers.publication import Publication, TableReader
from mergeplan.planner.state.database import put_rows
from mergeplan.planner.state.transaction import split_chunks

_HEAD = TypeAdapter(Publication)
_READERS = TypeAdapter(tuple[TableReader, ...])


@dataclass(frozen=True)
class ProjectReads:
    """The readers in one project, by table of others, and the repositories that may see their names."""

    project: str
    shown_to: tuple[str, ...]
    readers: Mapping[str, tuple[TableReader, ...]]


class Publications:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def mark(self, project: str) -> str:
        with self._database.reading() as connection:
            return _read_mark(connection, project)

    def views(self, project: str) -> Mapping[str, str]:
        with self._database.reading() as connection:
            return _read_head(connection, project).views

    def put(self, project: str, mark: str, publication: Publication) -> frozenset[str]:
        """Store what a project publishes, not who may see its names; return the tables that have other readers now."""
        texts = {table: _READERS.dump_json(readers).decode() for table, readers in publication.reads.items()}
        rows = [{"repository": project, "table_name": table, "data": text} for table, text in texts.items()]
        with self._database.writing() as connection:
            query = sa.select(READS.c.table_name, READS.c.data).where(READS.c.repository == project)
            earlier_texts = {row.table_name: row.data for row in connection.execute(query)}
            shown_to = _read_head(connection, project).shown_to
            _put_head(connection, project, mark, replace(publication, shown_to=shown_to))
            connection.execute(READS.delete().where(READS.c.repository == project))
            if rows:
                put_rows(connection, READS, rows)
        names = earlier_texts.keys() | texts.keys()
        return frozenset(name for name in names if earlier_texts.get(name) != texts.get(name))

    def show_to(self, project: str, repositories: tuple[str, ...]) -> frozenset[str]:
        """Store who may see a project's names; return the tables that it reads if that changes, else none.

        It is stored as soon as it is known: what the project published may be older.
        """
        with self._database.writing() as connection:
            head = _read_head(connection, project)
            if head.shown_to != repositories:
                _put_head(connection, project, _read_mark(connection, project), replace(head, shown_to=repositories))
                query = sa.select(READS.c.table_name).where(READS.c.repository == project)
                return frozenset(connection.execute(query).scalars())
            return frozenset()

    def list_keys(self) -> tuple[str, ...]:
        with self._database.reading() as connection:
            return tuple(connection.execute(sa.select(PUBLICATIONS.c.repository)).scalars())

    def forget(self, project: str) -> None:
        with self._database.writing() as connection:
            for table in (PUBLICATIONS, READS):
                connection.execute(table.delete().where(table.c.repository == project))

    def find_reads(self, tables: Iterable[str], but: str) -> tuple[ProjectReads, ...]:
        names, readers = sorted(set(tables)), dict[str, dict[str, tuple[TableReader, ...]]]()
        with self._database.reading() as connection:
            for chunk in split_chunks(names):
                query = sa.select(READS).where(READS.c.table_name.in_(chunk), READS.c.repository != but)
                for row in connection.execute(query.order_by(READS.c.repository, READS.c.table_name)):
                    readers.setdefault(row.repository, {})[row.table_name] = _READERS.validate_json(row.data)
            return tuple(
                ProjectReads(project, _read_head(connection, project).shown_to, tables_read)
                for project, tables_read in readers.items()
            )


def _read_mark(connection: sa.Connection, project: str) -> str:
    query = sa.select(PUBLICATIONS.c.mark).where(PUBLICATIONS.c.repository == project)
    return str(connection.execute(query).scalar() or "")


def _read_head(connection: sa.Connection, project: str) -> Publication:
    """Return a publication without its reads; an empty one where there is none."""
    query = sa.select(PUBLICATIONS.c.data).where(PUBLICATIONS.c.repository == project)
    data = connection.execute(query).scalar()
    return _HEAD.validate_json(data) if data else Publication()


def _put_head(connection: sa.Connection, project: str, mark: str, publication: Publication) -> None:
    data = _HEAD.dump_json(replace(publication, reads={})).decode()
    put_rows(connection, PUBLICATIONS, [{"repository": project, "mark": mark, "data": data}])
