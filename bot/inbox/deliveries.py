"""Webhook deliveries, each taken in once by its GUID, and what each makes due."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import sqlalchemy as sa

from bot.github.events import COMES, Event
from bot.inbox.commands import take_command
from bot.inbox.database import InboxDatabase, now
from bot.inbox.prods import put_prod, read_prod
from bot.inbox.pulls import put_pull, read_pull
from bot.inbox.queue import Queue, queue_key
from bot.inbox.tables import DELIVERIES, LANES, PRODS, PULLS, RUNS
from bot.records import News, PullState


class Deliveries:
    """The deliveries of every repository."""

    def __init__(self, database: InboxDatabase, queue: Queue) -> None:
        self._database = database
        self._queue = queue

    def receive(self, event: Event) -> bool:
        """Takes a delivery in for good; False when its GUID is known already, and then nothing is done."""
        try:
            with self._database.writing() as connection:
                known = sa.select(DELIVERIES.c.id).where(DELIVERIES.c.guid == event.guid)
                if connection.execute(known).first():
                    return False
                self._take_in(connection, event)
        except sa.exc.IntegrityError:
            return False  # the same delivery, at the same moment
        self._queue.notify()
        return True

    def notice(self, repository: str, number: int, kind: str) -> None:
        """Takes in news that no webhook brought."""
        self.receive(Event(f"notice:{uuid4()}", kind, repository, number))

    def news(self, key: str, after: int) -> tuple[News, ...]:
        """What came to a queue key after the delivery with that id, oldest first."""
        query = sa.select(DELIVERIES).where(DELIVERIES.c.lane == key, DELIVERIES.c.id > after).order_by(DELIVERIES.c.id)
        with self._database.reading() as connection:
            return tuple(News(row.id, row.kind, row.head) for row in connection.execute(query))

    def forget_old(self, days: float) -> None:
        """Drops deliveries and ended runs older than that: GitHub sends none again after three days."""
        with self._database.writing() as connection:
            before = now(connection) - days * 86_400
            connection.execute(DELIVERIES.delete().where(DELIVERIES.c.received_at < before))
            connection.execute(RUNS.delete().where(RUNS.c.ended_at < before))

    def _take_in(self, connection: sa.Connection, event: Event) -> None:
        if event.owner:
            self._take_in_installation(connection, event)
            return
        numbers = _numbers(connection, event)
        _insert(connection, event, queue_key(event.repository, numbers[0]) if numbers else "")
        for number in numbers:
            self._queue.make_due(connection, event.repository, number, pushed=event.kind == "pull_request.synchronize")
        if event.again and numbers:
            _ask_again(connection, event.repository, numbers[0])
        if event.said:
            take_command(connection, event.repository, event.number, event.said)

    def _take_in_installation(self, connection: sa.Connection, event: Event) -> None:
        """What an installation brings, or brings back, is looked at: its prods, and pull requests that are not over."""
        _insert(connection, event, "")
        if event.kind.rpartition(".")[2] not in COMES:
            return
        known = sa.select(PRODS.c.repository).where(PRODS.c.repository.startswith(f"{event.owner}/", autoescape=True))
        names = event.repositories or tuple(row.repository for row in connection.execute(known))
        put_off = (LANES.c.repository.startswith(f"{event.owner}/", autoescape=True), LANES.c.due_at.is_not(None))
        connection.execute(LANES.update().where(*put_off).values(due_at=now(connection)))
        for name in names:
            self._queue.make_due(connection, name, 0)
            over = (PullState.CLOSED.value, PullState.PROMOTED.value)
            open_pulls = sa.select(PULLS.c.number).where(PULLS.c.repository == name, PULLS.c.state.not_in(over))
            for pull in connection.execute(open_pulls).all():
                self._queue.make_due(connection, name, pull.number)


def _insert(connection: sa.Connection, event: Event, key: str) -> None:
    row = {"guid": event.guid, "kind": event.kind, "lane": key, "head": event.head}
    connection.execute(DELIVERIES.insert().values({**row, "received_at": now(connection)}))


def _numbers(connection: sa.Connection, event: Event) -> list[int]:
    """What an event makes due: its pull request, or (0) the prod whose branch was pushed."""
    if event.number:
        return [event.number]
    if event.again:
        of_head = (PULLS.c.repository == event.repository, PULLS.c.head == event.head)
        row = connection.execute(sa.select(PULLS.c.number).where(*of_head)).first()
        return [row.number] if row else [0]
    prod = read_prod(connection, event.repository)
    return [] if event.branch and prod.branch and prod.branch != event.branch else [0]


def _ask_again(connection: sa.Connection, repository: str, number: int) -> None:
    if not number:
        put_prod(connection, replace(read_prod(connection, repository), again=True))
    elif record := read_pull(connection, repository, number):
        put_pull(connection, replace(record, again=True))
