"""Repositories by GitHub's number, which stays when one is renamed or transferred.

All that the bot and the planner remember of a repository is kept under its key: the name that it had when it was first
seen. A key never changes, so neither does anything that was built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
import structlog

from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.tables import COMMANDS, PROGRESS, PULLS, REPOSITORIES
from mergeplan.bot.projects import SEPARATOR
from mergeplan.bot.records import Repository
from mergeplan.planner.errors import RequestError
from mergeplan.planner.state.database import put_rows

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NameTaken:
    """A repository that nobody has seen yet, under a name whose records belong to the one with number `holder`."""

    number: int
    name: str
    holder: int


class Repositories:
    """The key and the present name of every repository."""

    def __init__(self, database: InboxDatabase) -> None:
        self._database = database
        self._seen: dict[int, tuple[str, str]] = {}  # number: key and name, as they were read last

    def find_key(self, number: int, name: str) -> str:
        """Return the key of the repository with that number, which is called `name` now.

        Raise RequestError where the name's records belong to another repository, until `settle` has decided.
        """
        key, last_name = self._seen.get(number, ("", ""))
        if last_name != name:
            if self.note({number: name}):
                raise RequestError(f"`{name}` is another repository than the one of that name before.")
            key = self._seen[number][0]
        return key

    def keys_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the keys of repositories by their present names; a name that nobody has seen yet is its own key."""
        with self._database.reading() as connection:
            keys = {row.name: row.key for row in connection.execute(sa.select(REPOSITORIES))}
        return tuple(keys.get(name, name) for name in names)

    def find(self, key: str) -> Repository:
        """Return the repository with that key."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(REPOSITORIES).where(REPOSITORIES.c.key == key)).first()
        return Repository(row.name, row.id) if row else Repository(key)

    def note(self, names: Mapping[int, str]) -> tuple[NameTaken, ...]:
        """Store the present names of repositories by their numbers; return those that cannot get a key yet."""
        taken = []
        with self._database.writing() as connection:
            rows = {row.id: row for row in connection.execute(sa.select(REPOSITORIES))}
            for number, name in names.items():
                if number in rows and rows[number].name != name:
                    _rename(connection, number, name)
                    log.info("repository_renamed", key=rows[number].key, repository=name, earlier=rows[number].name)
            holders = {name: row.id for row in rows.values() for name in (row.key, names.get(row.id, row.name))}
            for number, name in names.items():
                if number not in rows and name in holders:
                    taken.append(NameTaken(number, name, holders[name]))
                    continue
                key = rows[number].key if number in rows else name
                put_rows(connection, REPOSITORIES, [{"id": number, "key": key, "name": name}], update=False)
                self._seen[number] = key, name
        return tuple(taken)

    def settle(self, taken: NameTaken, holders_name: str) -> None:
        """Give a repository its key: a new one, or where nothing has the holder's number any more, the holder's.

        It was recreated then: prod goes on, and pull requests are counted from 1 again.
        """
        if not holders_name:
            self._take_over(taken)
            return
        key = f"{taken.name}.{taken.number}"
        with self._database.writing() as connection:
            _rename(connection, taken.holder, holders_name)
            connection.execute(REPOSITORIES.insert().values(id=taken.number, key=key, name=taken.name))
        log.info("repository_name_reused", key=key, repository=taken.name, holder=holders_name)

    def _take_over(self, taken: NameTaken) -> None:
        with self._database.writing() as connection:
            of_holder = REPOSITORIES.c.id == taken.holder
            key = connection.execute(sa.select(REPOSITORIES.c.key).where(of_holder)).scalar_one()
            connection.execute(REPOSITORIES.update().where(of_holder).values(id=taken.number, name=taken.name))
            for table in (PULLS, COMMANDS, PROGRESS):
                is_of_key = sa.or_(
                    table.c.repository == key, table.c.repository.startswith(f"{key}{SEPARATOR}", autoescape=True)
                )
                connection.execute(table.delete().where(is_of_key, table.c.number > 0))
        self._seen.pop(taken.holder, None)
        log.info("repository_recreated", key=key, repository=taken.name)


def _rename(connection: sa.Connection, number: int, name: str) -> None:
    connection.execute(REPOSITORIES.update().where(REPOSITORIES.c.id == number).values(name=name))
