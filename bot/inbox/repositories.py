"""Repositories by GitHub's number, which stays when one is renamed or transferred.

All that the bot and the planner remember of a repository is kept under its key: the name that it had when it was first
seen. A key never changes, so neither does anything that was built.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
                raise _is_another(name)
            key = self._seen[number][0]
        return key

    def foresee_key(self, number: int, name: str) -> str:
        """Return what `find_key` would return, and store nothing; errors as `find_key`."""
        with self._database.reading() as connection:
            rows = _read_rows(connection)
        if not number or number in rows:
            return self.keys_of([Repository(name, number)])[0]
        if any(row.name == name for row in rows.values()):
            raise _is_another(name)
        return f"{name}.{number}" if any(row.key == name for row in rows.values()) else name

    def find_keys(self, names: Mapping[int, str]) -> tuple[str, ...]:
        """Return the keys of repositories by their numbers, without those for which `find_key` raises RequestError."""
        self.note(names)
        return self.keys_of(Repository(name, number) for number, name in names.items())

    def keys_of(self, repositories: Iterable[Repository]) -> tuple[str, ...]:
        """Return the keys of repositories, without those whose name's records belong to another one.

        One without a number is looked up by its name; a name that nobody has seen yet is its own key.
        """
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(REPOSITORIES)).all()
        numbers, names = {row.id: row.key for row in rows}, {row.name: row.key for row in rows}
        keys = (numbers.get(one.number, "") if one.number else names.get(one.name, one.name) for one in repositories)
        return tuple(filter(None, keys))

    def find(self, key: str) -> Repository:
        with self._database.reading() as connection:
            row = connection.execute(sa.select(REPOSITORIES).where(REPOSITORIES.c.key == key)).first()
        return Repository(row.name, row.id) if row else Repository(key)

    def note(self, names: Mapping[int, str]) -> tuple[NameTaken, ...]:
        """Store the present names of repositories by their numbers; return those that cannot get a key yet."""
        taken = []
        with self._database.writing() as connection:
            rows = _read_rows(connection)
            for number, name in names.items():
                if number in rows and rows[number].name != name:
                    _rename(connection, number, name)
                    log.info("repository_renamed", key=rows[number].key, repository=name, earlier=rows[number].name)
            keys = {row.key for row in rows.values()}
            holders = {names.get(row.id, row.name): row.id for row in rows.values()}
            for number, name in names.items():
                if number not in rows and name in holders:
                    taken.append(NameTaken(number, name, holders[name]))
                    continue
                if number not in rows:
                    # The one whose records are under that name is called otherwise now.
                    key = f"{name}.{number}" if name in keys else name
                    put_rows(connection, REPOSITORIES, [{"id": number, "key": key, "name": name}], update=False)
                # Another process may have been first, and have seen another name.
                self._seen[number] = rows[number].key if number in rows else _read_key(connection, number), name
        return tuple(taken)

    def settle(self, taken: NameTaken, holders_name: str | None) -> None:
        """Give a repository its key: a new one, or where the holder is deleted (its name is ''), the holder's.

        It was recreated then: prod goes on, and pull requests are counted from 1 again. None: nobody knows where the
        holder is, so it may come back to its records.
        """
        with self._database.writing() as connection:
            rows = _read_rows(connection)
            if taken.number in rows or taken.holder not in rows:
                return  # another process was first
            if holders_name == "":
                self._take_over(connection, taken, rows[taken.holder].key)
                return
            key = f"{taken.name}.{taken.number}"
            _rename(connection, taken.holder, holders_name or taken.name)
            put_rows(connection, REPOSITORIES, [{"id": taken.number, "key": key, "name": taken.name}], update=False)
        log.info("repository_name_reused", key=key, repository=taken.name, holder=holders_name)

    def _take_over(self, connection: sa.Connection, taken: NameTaken, key: str) -> None:
        of_holder = REPOSITORIES.c.id == taken.holder
        connection.execute(REPOSITORIES.update().where(of_holder).values(id=taken.number, name=taken.name))
        for table in (PULLS, COMMANDS, PROGRESS):
            is_of_key = sa.or_(
                table.c.repository == key, table.c.repository.startswith(f"{key}{SEPARATOR}", autoescape=True)
            )
            connection.execute(table.delete().where(is_of_key, table.c.number > 0))
        self._seen.pop(taken.holder, None)
        log.info("repository_recreated", key=key, repository=taken.name)


def _is_another(name: str) -> RequestError:
    return RequestError(f"`{name}` is another repository than the one of that name before.")


def _read_key(connection: sa.Connection, number: int) -> str:
    return str(connection.execute(sa.select(REPOSITORIES.c.key).where(REPOSITORIES.c.id == number)).scalar_one())


def _read_rows(connection: sa.Connection) -> dict[int, sa.Row[Any]]:
    return {row.id: row for row in connection.execute(sa.select(REPOSITORIES).order_by(REPOSITORIES.c.id))}


def _rename(connection: sa.Connection, number: int, name: str) -> None:
    connection.execute(REPOSITORIES.update().where(REPOSITORIES.c.id == number).values(name=name))
