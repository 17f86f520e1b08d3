"""Comments with commands in them, each until it is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sqlalchemy as sa
from pydantic import TypeAdapter

from bot.commands import read_commands
from bot.github.events import WrittenComment
from bot.inbox.database import InboxDatabase
from bot.inbox.prods import read_prod
from bot.inbox.tables import COMMANDS
from bot.records import CommandRow
from planner.state.database import put

_COMMAND = TypeAdapter(CommandRow)


class Commands:
    """The commands of every pull request."""

    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def take(self, repository: str, number: int, written: WrittenComment, *, proven: bool = True) -> bool:
        """Takes in a comment that no webhook brought; False when it is known or holds no command.

        `proven` is False when nobody can tell whether it was edited.
        """
        with self._database.writing() as connection:
            return take_command(connection, repository, number, written, proven)

    def knows(self, repository: str, comment_id: int) -> bool:
        """True when that comment was taken in before."""
        with self._database.reading() as connection:
            return _is_known(connection, repository, comment_id)

    def open(self, repository: str, number: int) -> tuple[CommandRow, ...]:
        """The comments of a pull request that are not answered yet, oldest first."""
        of_pull = (COMMANDS.c.repository == repository, COMMANDS.c.number == number)
        query = sa.select(COMMANDS.c.data).where(*of_pull, COMMANDS.c.state != "answered")
        return self._read(query)

    def unseen(self) -> tuple[CommandRow, ...]:
        """The comments that still lack our eyes."""
        return self._read(sa.select(COMMANDS.c.data).where(COMMANDS.c.seen.is_(False)))

    def mark_seen(self, row: CommandRow) -> None:
        """Notes that the comment has our eyes on it, and nothing else."""
        self._change(row, lambda known: replace(known, seen=True))

    def answer(self, row: CommandRow) -> None:
        """Stores what became of a comment's commands."""
        self._change(row, lambda known: replace(known, state=row.state, answers=row.answers))

    def _read(self, query: sa.Select[tuple[str]]) -> tuple[CommandRow, ...]:
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(COMMANDS.c.comment_id))
            return tuple(_COMMAND.validate_json(row.data) for row in rows)

    def _change(self, row: CommandRow, change: Callable[[CommandRow], CommandRow]) -> None:
        where = (COMMANDS.c.repository == row.repository, COMMANDS.c.comment_id == row.comment_id)
        with self._database.writing() as connection:
            found = connection.execute(sa.select(COMMANDS.c.data).where(*where).with_for_update()).one()
            _put(connection, change(_COMMAND.validate_json(found.data)))


def take_command(
    connection: sa.Connection, repository: str, number: int, written: WrittenComment, proven: bool = True
) -> bool:
    """Takes in a comment, in the caller's transaction; False when it is known or holds no command."""
    namespace = read_prod(connection, repository).namespace
    if not read_commands(written.body, namespace) or _is_known(connection, repository, written.comment_id):
        return False
    _put(
        connection,
        CommandRow(written.comment_id, repository, number, written.author, written.body, written.at, proven=proven),
    )
    return True


def _is_known(connection: sa.Connection, repository: str, comment_id: int) -> bool:
    where = (COMMANDS.c.repository == repository, COMMANDS.c.comment_id == comment_id)
    return connection.execute(sa.select(COMMANDS.c.number).where(*where)).first() is not None


def _put(connection: sa.Connection, row: CommandRow) -> None:
    values = {"repository": row.repository, "comment_id": row.comment_id, "number": row.number, "state": row.state}
    put(connection, COMMANDS, [{**values, "seen": row.seen, "data": _COMMAND.dump_json(row).decode()}])
