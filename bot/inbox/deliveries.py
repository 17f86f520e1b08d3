"""Webhook deliveries, each taken in once by its GUID, and what each makes due."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from uuid import uuid4

import sqlalchemy as sa
import structlog

from mergeplan.bot.branches import branches_of
from mergeplan.bot.forge.events import COMES, Event
from mergeplan.bot.inbox.commands import is_of_ours, take_command, take_description, take_press
from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.prods import put_prod, read_prod
from mergeplan.bot.inbox.pulls import put_pull, read_pull
from mergeplan.bot.inbox.queue import BRANCHES, Due, Queue, queue_key
from mergeplan.bot.inbox.repositories import Repositories
from mergeplan.bot.inbox.tables import DELIVERIES, PRODS, PULLS, QUEUE, RUNS
from mergeplan.bot.metrics import DELIVERIES as DELIVERIES_SEEN
from mergeplan.bot.projects import label_of, project_keys
from mergeplan.bot.records import MergeGroup, News, ProdRecord, PullRecord, PullState, Repository, is_label
from mergeplan.bot.transitions.planning import request_plan
from mergeplan.planner.errors import RequestError

log = structlog.get_logger(__name__)
DEADLOCKS = ("40P01", "40001")
GUID_MOST = 120  # characters
# Made once: a delivery a statement takes longer to make than to run.
_KNOWN = sa.select(DELIVERIES.c.guid).where(DELIVERIES.c.guid.in_(sa.bindparam("guids", expanding=True)))
_INSERT = DELIVERIES.insert()


@dataclass(frozen=True)
class Taken:
    """The result of a delivery: whether it is new, the queue keys that it makes due, and its repository's key."""

    fresh: bool
    keys: tuple[str, ...] = ()
    repository: str = ""


class Deliveries:
    def __init__(
        self, database: InboxDatabase, queue: Queue, repositories: Repositories, folders: Sequence[str]
    ) -> None:
        self._database = database
        self._queue = queue
        self._repositories = repositories
        self._folders = tuple(folders)

    def receive(self, event: Event) -> bool:
        """Store a delivery; False when its GUID is known already, and then nothing is done."""
        (taken,) = self.receive_all([event])
        if isinstance(taken, Exception):
            raise taken
        return taken

    def receive_all(self, events: Sequence[Event]) -> tuple[bool | Exception, ...]:
        """Store deliveries with one commit; return for each what `receive` returns, or its error.

        When it returns, all accepted deliveries are durable. One that cannot be stored does not prevent the others. In
        a repository of several projects each of them stores its own.
        """
        parts = [self._find_parts(event) for event in events]
        stored = [part for part in parts if not isinstance(part, RequestError)]
        taken = iter(self._receive_all([part_event for part in stored for part_event in part]))
        return tuple(
            part if isinstance(part, RequestError) else _merge_results([next(taken) for _ in part]) for part in parts
        )

    def _find_parts(self, event: Event) -> tuple[Event, ...] | RequestError:
        """Return the event for each project; the error where its repository has no key yet."""
        try:
            return self._split_by_project(self._name_by_keys(event))
        except RequestError as error:
            return error

    def _name_by_keys(self, event: Event) -> Event:
        if event.owner:
            names = dict(zip(event.numbers, event.repositories, strict=True))
            return replace(event, repositories=self._repositories.find_keys(names))
        if event.repository_id:
            return replace(event, repository=self._repositories.find_key(event.repository_id, event.repository))
        (key,) = self._repositories.keys_of([Repository(event.repository)])
        return replace(event, repository=key)

    def _split_by_project(self, event: Event) -> tuple[Event, ...]:
        if event.owner:
            every = (key for name in event.repositories for key in project_keys(name, self._folders))
            return (replace(event, repositories=tuple(every)),)
        keys = project_keys(event.repository, self._folders)
        about = (key for key in keys if event.project in (None, label_of(key)))
        return tuple(replace(event, repository=key, guid=_project_guid(event.guid, label_of(key))) for key in about)

    def _receive_all(self, events: Sequence[Event]) -> tuple[bool | Exception, ...]:
        if not events:
            return ()
        try:
            fresh: tuple[bool | Exception, ...] = self._commit_events(events)
        except sa.exc.IntegrityError as error:  # another process took one of them in at the same moment
            fresh = self._one_by_one(events, error) if len(events) > 1 else (False,)
        except Exception as error:
            code = getattr(getattr(error.__cause__, "orig", None), "sqlstate", "")
            if len(events) == 1 or (isinstance(error, RequestError) and code not in DEADLOCKS):
                return tuple(error for _ in events)
            fresh = self._one_by_one(events, error)
        if any(taken is True for taken in fresh):
            self._queue.notify()
        return fresh

    def _one_by_one(self, events: Sequence[Event], why: Exception) -> tuple[bool | Exception, ...]:
        log.warning("deliveries_apart", deliveries=len(events), why=type(why).__name__)
        return tuple(taken for event in events for taken in self._receive_all([event]))

    def rehearse(self, event: Event) -> Taken:
        """Return what storing a delivery would do, by a transaction that is rolled back; errors as `receive`."""
        key = "" if event.owner else self._repositories.foresee_key(event.repository_id, event.repository)
        events = self._split_by_project(replace(event, repository=key))
        with self._database.undone() as connection:
            old_state = _queue_state(connection)
            stored_guids = set(connection.execute(_KNOWN, {"guids": [delivery.guid for delivery in events]}).scalars())
            fresh = [delivery for delivery in events if delivery.guid not in stored_guids]
            if not fresh:
                return Taken(fresh=False, repository=key)
            self._take_in(connection, fresh)
            new_state = _queue_state(connection)
        due = tuple(sorted(due for due in new_state if new_state[due] != old_state.get(due)))
        return Taken(fresh=True, keys=due, repository=key)

    def notice(self, repository: str, number: int, kind: str, head: str = "") -> None:
        """Store news that no webhook brought."""
        (taken,) = self._receive_all([Event(f"notice:{uuid4()}", kind, repository, number, head=head)])
        if isinstance(taken, Exception):
            raise taken

    def news(self, key: str, after: int) -> tuple[News, ...]:
        """Return what came to a queue key after the delivery with that id, oldest first."""
        query = (
            sa.select(DELIVERIES)
            .where(DELIVERIES.c.queue_key == key, DELIVERIES.c.id > after)
            .order_by(DELIVERIES.c.id)
        )
        with self._database.reading() as connection:
            return tuple(News(row.id, row.kind, row.head) for row in connection.execute(query))

    def forget_old(self, days: float) -> None:
        """Delete deliveries and runs older than that, because GitHub sends none again after three days.

        A run without a recorded end was on a machine that never came back.
        """
        with self._database.writing() as connection:
            cutoff = database_seconds(connection) - days * 86_400
            connection.execute(DELIVERIES.delete().where(DELIVERIES.c.received_at < cutoff))
            unseen = sa.and_(RUNS.c.ended_at.is_(None), RUNS.c.started_at < cutoff, RUNS.c.purpose != "warm")
            connection.execute(RUNS.delete().where(sa.or_(RUNS.c.ended_at < cutoff, unseen)))

    def _commit_events(self, events: Sequence[Event]) -> tuple[bool, ...]:
        with self._database.writing() as connection:
            stored_guids = set(connection.execute(_KNOWN, {"guids": [event.guid for event in events]}).scalars())
            fresh: dict[str, Event] = {}
            taken = []
            for event in events:
                taken.append(event.guid not in stored_guids and event.guid not in fresh)
                fresh |= {event.guid: event} if taken[-1] else {}
            if fresh:
                self._take_in(connection, tuple(fresh.values()))
        return tuple(taken)

    def _take_in(self, connection: sa.Connection, events: Sequence[Event]) -> None:
        prods = cache(partial(read_prod, connection))
        numbers = [_due_numbers(connection, event, prods) for event in events]
        at, rows, due = database_seconds(connection), [], []
        for event, number in zip(events, numbers, strict=True):
            key = queue_key(event.repository, number[0]) if number else ""
            row = {
                "guid": event.guid,
                "kind": event.kind,
                "queue_key": key,
                "head": event.head,
                "trace": event.trace or None,
            }
            rows.append({**row, "received_at": at})
            pushed = event.kind == "pull_request.synchronize"
            due += [Due(event.repository, pull_number, pushed=pushed) for pull_number in number]
        connection.execute(_INSERT, rows)
        self._queue.make_all_due(connection, due, at)
        for event, number in zip(events, numbers, strict=True):
            if event.owner:
                self._take_in_installation(connection, event)
            if event.again and number:
                _ask_again(connection, event.repository, number[0], event.head)
            if event.kind.startswith("merge_group."):
                _note_group(connection, event)
            if event.comment:
                take_command(connection, event.repository, event.number, event.comment)
            if event.description:
                take_description(connection, event.repository, event.number, event.description)
            if event.pressed and number:
                take_press(connection, _pull_of(connection, event), event.pressed, event.guid)

    def _take_in_installation(self, connection: sa.Connection, event: Event) -> None:
        if event.kind.rpartition(".")[2] not in COMES:
            return
        prods_query = sa.select(PRODS.c.repository).where(
            PRODS.c.repository.startswith(f"{event.owner}/", autoescape=True)
        )
        names = event.repositories or tuple(row.repository for row in connection.execute(prods_query))
        put_off = (QUEUE.c.repository.startswith(f"{event.owner}/", autoescape=True), QUEUE.c.due_at.is_not(None))
        connection.execute(QUEUE.update().where(*put_off).values(due_at=database_seconds(connection)))
        for name in names:
            self._queue.make_due(connection, name, 0)
            over = (PullState.CLOSED.value, PullState.PROMOTED.value)
            open_pulls = sa.select(PULLS.c.number).where(PULLS.c.repository == name, PULLS.c.state.not_in(over))
            for pull in connection.execute(open_pulls).all():
                self._queue.make_due(connection, name, pull.number)


def _project_guid(guid: str, label: str) -> str:
    """Return the id of a delivery for one project, within the database's column."""
    named = f"{guid}~{label}" if label else guid
    return named if len(named) <= GUID_MOST else hashlib.sha256(named.encode()).hexdigest()


def _merge_results(results: Sequence[bool | Exception]) -> bool | Exception:
    """Return the result of a delivery for all projects: an error of one has it sent again."""
    return next(
        (result for result in results if isinstance(result, Exception)), any(result is True for result in results)
    )


def _queue_state(connection: sa.Connection) -> dict[str, tuple[int, float | None]]:
    """Return the number of requests for each key, and the time when it is due."""
    rows = connection.execute(sa.select(QUEUE.c.key, QUEUE.c.wanted, QUEUE.c.due_at))
    return {row.key: (row.wanted, row.due_at) for row in rows}


def _pull_of(connection: sa.Connection, event: Event) -> PullRecord:
    return read_pull(connection, event.repository, event.number) or PullRecord(event.repository, event.number)


def _asks_nobody(connection: sa.Connection, event: Event, prod_of: Callable[[str], ProdRecord]) -> bool:
    """Return True for an installation's event, a label that no rule names, and a press that is not on ours."""
    if event.label and not is_label(event.label, prod_of(event.repository).skip_label):
        return True
    if event.pressed and not is_of_ours(event.pressed, _pull_of(connection, event)):
        log.info("press_left_alone", repository=event.repository, pull_request=event.number, delivery=event.guid)
        DELIVERIES_SEEN.labels("left_alone").inc()
        return True
    return bool(event.owner)


def _due_numbers(connection: sa.Connection, event: Event, prod_of: Callable[[str], ProdRecord]) -> tuple[int, ...]:
    """Return what an event makes due: its pull request, (0) the prod of its branch, or the other branches."""
    if _asks_nobody(connection, event, prod_of):
        return ()
    if event.number:
        return (event.number,)
    if event.again:
        of_head = (PULLS.c.repository == event.repository, PULLS.c.head == event.head)
        row = connection.execute(sa.select(PULLS.c.number).where(*of_head)).first()
        if row is None and any(record.commit == event.head for record in prod_of(event.repository).branches):
            return (BRANCHES,)
        return (row.number,) if row else (0,)
    prod = prod_of(event.repository)
    if event.branch and event.branch in branches_of(prod.branches):
        return (BRANCHES,)
    return () if event.branch and prod.branch and prod.branch != event.branch else (0,)


def _ask_again(connection: sa.Connection, repository: str, number: int, head: str) -> None:
    if number == BRANCHES:
        prod = read_prod(connection, repository)
        branches = (replace(record, again=record.again or record.commit == head) for record in prod.branches)
        put_prod(connection, replace(prod, branches=tuple(branches)))
    elif not number:
        put_prod(connection, replace(read_prod(connection, repository), again=True))
    elif record := read_pull(connection, repository, number):
        is_group = record.group.head == head
        put_pull(connection, replace(record, group=MergeGroup(head)) if is_group else request_plan(record))


def _note_group(connection: sa.Connection, event: Event) -> None:
    """Store the merge queue's newest group of a pull request; a dropped one is cleared if it is still that."""
    record = _pull_of(connection, event)
    if event.kind == "merge_group.checks_requested":
        if record.group.head != event.head:  # the timer may have seen it before its webhook came, or after
            put_pull(connection, replace(record, group=MergeGroup(event.head)))
    elif record.group.head == event.head:
        put_pull(connection, replace(record, group=replace(record.group, head="")))
