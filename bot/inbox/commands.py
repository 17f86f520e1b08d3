"""Comments with commands in them, and presses in place of comments, each until it is answered."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from mergeplan.bot.commands.description import compare_descriptions
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.forge.events import Pressed, WrittenComment, WrittenDescription
from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.prods import read_prod
from mergeplan.bot.inbox.queue import Queue
from mergeplan.bot.inbox.tables import COMMANDS
from mergeplan.bot.projects import label_of
from mergeplan.bot.records import CommandRow, PullRecord
from mergeplan.planner.state.database import put_rows

_COMMAND = TypeAdapter(CommandRow)


class Commands:
    def __init__(self, database: InboxDatabase, queue: Queue) -> None:
        self._database = database
        self._queue = queue

    def take(self, repository: str, number: int, comment: WrittenComment, *, proven: bool = True) -> bool:
        """Store a comment that no webhook delivered; return False if it is known or has no command.

        `proven` is False if it is unknown whether the comment was edited.
        """
        with self._database.writing() as connection:
            return take_command(connection, repository, number, comment, proven)

    def knows(self, repository: str, comment_id: int) -> bool:
        with self._database.reading() as connection:
            return _is_known(connection, repository, comment_id)

    def open(self, repository: str, number: int) -> tuple[CommandRow, ...]:
        """Return the comments of a pull request that are not answered yet, oldest first."""
        of_pull = (COMMANDS.c.repository == repository, COMMANDS.c.number == number)
        query = sa.select(COMMANDS.c.data).where(*of_pull, COMMANDS.c.state != "answered")
        return self._read_rows(query)

    def answered(self, repository: str, number: int) -> tuple[CommandRow, ...]:
        """Return the answered comments of a pull request, oldest first."""
        of_pull = (COMMANDS.c.repository == repository, COMMANDS.c.number == number)
        return self._read_rows(sa.select(COMMANDS.c.data).where(*of_pull, COMMANDS.c.state == "answered"))

    def unseen(self) -> tuple[CommandRow, ...]:
        """Return the comments without our reaction."""
        return self._read_rows(sa.select(COMMANDS.c.data).where(COMMANDS.c.seen.is_(False)))

    def mark_seen(self, row: CommandRow) -> None:
        """Store that the comment has our reaction, and nothing else."""
        self._change_row(row, lambda stored_row: replace(stored_row, seen=True))

    def share(self, row: CommandRow, lines: Mapping[str, tuple[str, ...]]) -> CommandRow:
        """Decide once for all projects of a repository which of them answers which lines; return the row.

        `lines` are the texts of the lines by the projects' keys. The first project that calls this decides, even if the
        others find other lines later: no line is answered twice, and none is left out.
        """
        where = (COMMANDS.c.comment_id == row.comment_id, COMMANDS.c.repository.in_([row.repository, *lines]))
        query = sa.select(COMMANDS.c.data).where(*where).order_by(COMMANDS.c.repository).with_for_update()
        with self._database.writing() as connection:
            read = [_COMMAND.validate_json(command_row.data) for command_row in connection.execute(query)]
            commands_by_key = {command.repository: command for command in read}
            if commands_by_key[row.repository].lines is None:
                for key in dict.fromkeys([row.repository, *lines]):
                    if key not in commands_by_key:  # no webhook brought it there
                        commands_by_key[key] = replace(row, repository=key, seen=True)
                        self._queue.make_due(connection, key, row.number)
                    if commands_by_key[key].lines is None:
                        commands_by_key[key] = replace(commands_by_key[key], lines=lines.get(key, ()))
                        _put_command(connection, commands_by_key[key])
        return commands_by_key[row.repository]

    def answer(self, row: CommandRow) -> None:
        self._change_row(row, lambda stored_row: replace(stored_row, state=row.state, answers=row.answers))

    def _read_rows(self, query: sa.Select[tuple[str]]) -> tuple[CommandRow, ...]:
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(COMMANDS.c.comment_id))
            read = [_COMMAND.validate_json(row.data) for row in rows]
        return tuple(sorted(read, key=lambda row: datetime.fromisoformat(row.said_at)))

    def _change_row(self, row: CommandRow, change: Callable[[CommandRow], CommandRow]) -> None:
        where = (COMMANDS.c.repository == row.repository, COMMANDS.c.comment_id == row.comment_id)
        with self._database.writing() as connection:
            command_row = connection.execute(sa.select(COMMANDS.c.data).where(*where).with_for_update()).one()
            _put_command(connection, change(_COMMAND.validate_json(command_row.data)))


def take_command(
    connection: sa.Connection, repository: str, number: int, comment: WrittenComment, proven: bool = True
) -> bool:
    """Store a comment, in the caller's transaction; False when it is known or holds no command."""
    namespace = read_prod(connection, repository).namespace
    if not read_commands(comment.body, namespace) or _is_known(connection, repository, comment.comment_id):
        return False
    _put_command(
        connection,
        CommandRow(
            comment.comment_id,
            repository,
            number,
            comment.author,
            comment.body,
            comment.at,
            seen=bool(label_of(repository)),  # one project shows the eyes, for all
            proven=proven,
        ),
    )
    return True


def take_description(connection: sa.Connection, repository: str, number: int, written: WrittenDescription) -> None:
    """Store what an edit of a description asks for, in the caller's transaction, unless it is known."""
    edit = compare_descriptions(written.before, written.body, read_prod(connection, repository).namespace)
    once = ["description", number, written.at, written.author, *edit.lines]
    own_id = _hash_id(once)
    if not edit.lines or _is_known(connection, repository, own_id):
        return
    row = CommandRow(own_id, repository, number, written.author, "\n".join(edit.lines), written.at, seen=True)
    _put_command(connection, replace(row, proven=not edit.hidden, description=written.body))


def _hash_id(once: list[Any]) -> int:
    """Return an id that no comment has."""
    return -1 - int(hashlib.sha256(json.dumps(once).encode()).hexdigest()[:15], 16)


def take_press(connection: sa.Connection, record: PullRecord, press_event: Pressed, guid: str) -> None:
    """Store a press, in the caller's transaction, unless it is known, or the same one waits for its answer.

    It must be of our own check or plan comment: see `is_of_ours`. A tick that is delivered under another GUID (a
    workflow that is run again) is known by the time of its edit and the text before it. It is proven when the comment
    was as we wrote it.
    """
    repository, number = record.repository, record.number
    once = (
        [press_event.comment_id, press_event.at, press_event.read, *press_event.press.keys]
        if press_event.comment_id
        else [guid]
    )
    own_id = _hash_id(once)
    of_pull = (COMMANDS.c.repository == repository, COMMANDS.c.number == number, COMMANDS.c.state != "answered")
    waiting = connection.execute(sa.select(COMMANDS.c.data).where(*of_pull)).scalars()
    press_identity = (press_event.author, press_event.press)
    if _is_known(connection, repository, own_id) or any(
        (command.author, command.press) == press_identity for command in map(_COMMAND.validate_json, waiting)
    ):
        return
    at = press_event.at or datetime.fromtimestamp(database_seconds(connection), UTC).isoformat()
    row = CommandRow(own_id, repository, number, press_event.author, "", at, seen=True, press=press_event.press)
    _put_command(
        connection, replace(row, proven=not press_event.comment_id or press_event.read == record.comment.digest)
    )


def is_of_ours(press_event: Pressed, record: PullRecord) -> bool:
    """Return True for a press on a check or comment that we wrote for this pull request."""
    if press_event.comment_id:
        return press_event.comment_id == record.comment.id
    return any((check.id, check.sha) == (press_event.check_id, press_event.press.head) for check in record.checks)


def _is_known(connection: sa.Connection, repository: str, comment_id: int) -> bool:
    where = (COMMANDS.c.repository == repository, COMMANDS.c.comment_id == comment_id)
    return connection.execute(sa.select(COMMANDS.c.number).where(*where)).first() is not None


def _put_command(connection: sa.Connection, row: CommandRow) -> None:
    values = {"repository": row.repository, "comment_id": row.comment_id, "number": row.number, "state": row.state}
    put_rows(connection, COMMANDS, [{**values, "seen": row.seen, "data": _COMMAND.dump_json(row).decode()}])
