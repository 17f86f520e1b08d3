"""What must not be lost: deliveries by GUID, lanes of work, commands, and what we know of each pull request.

One transaction takes a delivery in: its GUID (unique), the lane that it makes due, and the command in it. A worker
claims a due lane for a while and says from time to time that it still lives; when it dies, the claim ends and another
takes the lane. The newest state is read when the lane runs, so ten deliveries to one lane are one job.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from pydantic import TypeAdapter

from bot.commands import read_commands
from bot.events import COMES, Event, Said
from bot.records import CommandRow, News, ProdRecord, PullRecord, State
from bot.tables import COMMANDS, DECISIONS, DELIVERIES, LANES, PRODS, PULLS, RUNS
from planner.state.database import clock, open_upgraded, put, transaction

LEASE_SECONDS = 30.0
_PULL = TypeAdapter(PullRecord)
_PROD = TypeAdapter(ProdRecord)
_COMMAND = TypeAdapter(CommandRow)


@dataclass(frozen=True)
class Lane:
    """A claimed lane: pull request `number` of the repository, or (0) its prod; `seen` is the last news it covers."""

    key: str
    repository: str
    number: int
    wanted: int
    seen: int
    attempts: int


@dataclass(frozen=True)
class Run:
    """A child process that was started and not yet seen to end."""

    run_id: str
    lane: str
    worker: str
    pid: int
    birth: str


@dataclass(frozen=True)
class Depth:
    """How much waits: lanes that are due, and for how long the oldest has been."""

    due: int
    oldest_seconds: float
    claimed: int


def lane_key(repository: str, number: int) -> str:
    """`owner/name#7`, or `owner/name@prod`."""
    return f"{repository}#{number}" if number else f"{repository}@prod"


class Inbox:
    """The bot's tables in the state database; every method is one transaction."""

    def __init__(self, url: str, *, settle_seconds: float = 2.0, lease_seconds: float = LEASE_SECONDS) -> None:
        self._database = open_upgraded(url, "bot")
        self._settle = settle_seconds
        self._lease = lease_seconds
        self._listeners: list[Callable[[], None]] = []
        self._alone: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    def close(self) -> None:
        self._database.dispose()

    def alone(self, repository: str, number: int) -> AbstractContextManager[object]:
        """Held while GitHub is told of a pull request: one thread of this process at a time."""
        return self._alone[lane_key(repository, number)]

    def on_work(self, listener: Callable[[], None]) -> None:
        """Calls the listener when this process took something in."""
        self._listeners.append(listener)

    def ping(self) -> None:
        """Raises RequestError when the database does not answer."""
        with transaction(self._database, read=True) as connection:
            connection.execute(sa.text("SELECT 1"))

    # --- deliveries ---

    def receive(self, event: Event) -> bool:
        """Takes a delivery in for good; False when its GUID is known already, and then nothing is done."""
        try:
            with transaction(self._database) as connection:
                known = sa.select(DELIVERIES.c.id).where(DELIVERIES.c.guid == event.guid)
                if connection.execute(known).first():
                    return False
                self._take_in(connection, event)
        except sa.exc.IntegrityError:
            return False  # the same delivery, at the same moment
        for listener in self._listeners:
            listener()
        return True

    def _take_in(self, connection: sa.Connection, event: Event) -> None:
        if event.owner:
            self._take_in_installation(connection, event)
            return
        numbers = self._numbers(connection, event)
        key = lane_key(event.repository, numbers[0]) if numbers else ""
        row = {"guid": event.guid, "kind": event.kind, "lane": key, "head": event.head}
        connection.execute(DELIVERIES.insert().values({**row, "received_at": self._now(connection)}))
        for number in numbers:
            self._make_due(connection, event.repository, number, pushed=event.kind == "pull_request.synchronize")
        if event.again and numbers and numbers[0]:
            self._ask_again(connection, event.repository, numbers[0])
        elif event.again:
            self._put_prod(connection, replace(self._prod(connection, event.repository), again=True))
        if event.said:
            self._take_command(connection, event.repository, event.number, event.said)

    def _take_in_installation(self, connection: sa.Connection, event: Event) -> None:
        """What an installation brings, or brings back, is looked at: its prods, and pull requests that are not over."""
        row = {"guid": event.guid, "kind": event.kind, "lane": "", "head": ""}
        connection.execute(DELIVERIES.insert().values({**row, "received_at": self._now(connection)}))
        if event.kind.rpartition(".")[2] not in COMES:
            return
        known = sa.select(PRODS.c.repository).where(PRODS.c.repository.startswith(f"{event.owner}/", autoescape=True))
        names = event.repositories or tuple(row.repository for row in connection.execute(known))
        put_off = (LANES.c.repository.startswith(f"{event.owner}/", autoescape=True), LANES.c.due_at.is_not(None))
        connection.execute(LANES.update().where(*put_off).values(due_at=self._now(connection)))
        for name in names:
            self._make_due(connection, name, 0)
            over = (State.CLOSED.value, State.PROMOTED.value)
            open_pulls = sa.select(PULLS.c.number).where(PULLS.c.repository == name, PULLS.c.state.not_in(over))
            for pull in connection.execute(open_pulls).all():
                self._make_due(connection, name, pull.number)

    def forget_old(self, days: float) -> None:
        """Drops deliveries and ended runs older than that: GitHub sends none again after three days."""
        with transaction(self._database) as connection:
            before = self._now(connection) - days * 86_400
            connection.execute(DELIVERIES.delete().where(DELIVERIES.c.received_at < before))
            connection.execute(RUNS.delete().where(RUNS.c.ended_at < before))

    def _numbers(self, connection: sa.Connection, event: Event) -> list[int]:
        """The lanes that an event makes due: its pull request, or the prod whose branch was pushed."""
        if event.number:
            return [event.number]
        if event.again:
            row = connection.execute(
                sa.select(PULLS.c.number).where(PULLS.c.repository == event.repository, PULLS.c.head == event.head)
            ).first()
            return [row.number] if row else [0]
        prod = self._prod(connection, event.repository)
        return [] if event.branch and prod.branch and prod.branch != event.branch else [0]

    def _ask_again(self, connection: sa.Connection, repository: str, number: int) -> None:
        record = self._pull(connection, repository, number)
        if record:
            self._put_pull(connection, replace(record, again=True))

    def notice(self, repository: str, number: int, kind: str) -> None:
        """Tells a lane something that no webhook told."""
        self.receive(Event(f"notice:{uuid4()}", kind, repository, number))

    def news(self, key: str, after: int) -> tuple[News, ...]:
        """What came to a lane after the delivery with that id, oldest first."""
        query = sa.select(DELIVERIES).where(DELIVERIES.c.lane == key, DELIVERIES.c.id > after).order_by(DELIVERIES.c.id)
        with transaction(self._database, read=True) as connection:
            return tuple(News(row.id, row.kind, row.head) for row in connection.execute(query))

    # --- lanes ---

    def wake(self, repository: str, number: int, *, in_seconds: float = 0.0) -> None:
        """Makes a lane due, as a delivery would."""
        with transaction(self._database) as connection:
            self._make_due(connection, repository, number, in_seconds=in_seconds)
        for listener in self._listeners:
            listener()

    def _make_due(
        self, connection: sa.Connection, repository: str, number: int, *, pushed: bool = False, in_seconds: float = 0.0
    ) -> None:
        now, key = self._now(connection), lane_key(repository, number)
        fresh = {"key": key, "repository": repository, "number": number, "wanted": 0, "attempts": 0, "error": ""}
        put(connection, LANES, [fresh], update=False)
        row = connection.execute(sa.select(LANES).where(LANES.c.key == key).with_for_update()).one()
        due = now + in_seconds
        if row.settle_until is not None and row.due_at is not None:
            # A burst of pushes: each moves the next plan off a little, but not for ever.
            due = min(now + self._settle, row.settle_until) if pushed else max(row.due_at, due)
        elif row.due_at is not None:
            due = min(row.due_at, due)
        connection.execute(LANES.update().where(LANES.c.key == key).values(wanted=row.wanted + 1, due_at=due))

    def claim(self, worker: str, only: str = "", but: Sequence[str] = ()) -> Lane | None:
        """The lane that has been due longest and that no living worker holds, now held by this one.

        `only` names one repository; `but` names owners whose lanes have to wait.
        """
        with transaction(self._database, read=True) as connection:
            if not connection.execute(self._claimable(connection, only, but)).first():
                return None
        with transaction(self._database) as connection:
            query = self._claimable(connection, only, but).with_for_update(skip_locked=True)
            row = connection.execute(query).first()
            if row is None:
                return None
            now = self._now(connection)
            connection.execute(
                LANES.update()
                .where(LANES.c.key == row.key)
                .values(owner=worker, owned_until=now + self._lease, settle_until=None)
            )
            last = connection.execute(
                sa.select(sa.func.max(DELIVERIES.c.id)).where(DELIVERIES.c.lane == row.key)
            ).scalar()
        return Lane(row.key, row.repository, row.number, row.wanted, last or 0, row.attempts)

    def _claimable(self, connection: sa.Connection, only: str, but: Sequence[str]) -> sa.Select[Any]:
        now = self._now(connection)
        free = sa.or_(LANES.c.owner.is_(None), LANES.c.owned_until < now)
        query = sa.select(LANES).where(LANES.c.due_at <= now, free)
        if only:
            query = query.where(LANES.c.repository == only)
        for owner in but:
            query = query.where(sa.not_(LANES.c.repository.startswith(f"{owner}/", autoescape=True)))
        return query.order_by(LANES.c.due_at).limit(1)

    def renew(self, worker: str, keys: Sequence[str]) -> None:
        """Says that the worker lives and still works on these lanes: its claims on them last on.

        A lane that it could not give back, the database being out of reach, is free when its claim ends.
        """
        with transaction(self._database) as connection:
            until = self._now(connection) + self._lease
            held = sa.and_(LANES.c.owner == worker, LANES.c.key.in_(keys))
            connection.execute(LANES.update().where(held).values(owned_until=until))

    def release(self, lane: Lane, *, settle: bool = False, again_in: float | None = None, error: str = "") -> None:
        """Gives a lane back: done, or due again when news came meanwhile, after a settling time, or after a failure."""
        with transaction(self._database) as connection:
            row = connection.execute(sa.select(LANES).where(LANES.c.key == lane.key).with_for_update()).one()
            now = self._now(connection)
            due: float | None = now if row.wanted != lane.wanted else None
            if again_in is not None:
                due = min(due, now + again_in) if due is not None and not error else now + again_in
            values: dict[str, Any] = {"settle_until": None}
            if settle:
                due, values["settle_until"] = now + self._settle, now + 10 * self._settle
            attempts = row.attempts + 1 if error else 0
            values |= {"due_at": due, "owner": None, "owned_until": None, "attempts": attempts, "error": error[:2000]}
            connection.execute(LANES.update().where(LANES.c.key == lane.key).values(values))
        if due is not None:
            for listener in self._listeners:
                listener()

    def release_of(self, worker: str) -> None:
        """Frees all lanes of a worker that is no more; each is due at once."""
        with transaction(self._database) as connection:
            now = self._now(connection)
            connection.execute(
                LANES.update().where(LANES.c.owner == worker).values(owner=None, owned_until=None, due_at=now)
            )

    def owners(self) -> tuple[str, ...]:
        """The workers that hold a lane."""
        with transaction(self._database, read=True) as connection:
            rows = connection.execute(sa.select(LANES.c.owner).where(LANES.c.owner.is_not(None)).distinct())
            return tuple(row.owner for row in rows)

    def has_plans(self, repository: str) -> bool:
        """True while a lane of the repository is due or put off."""
        query = sa.select(LANES.c.key).where(LANES.c.repository == repository, LANES.c.due_at.is_not(None))
        with transaction(self._database, read=True) as connection:
            return connection.execute(query).first() is not None

    def has_others(self, owners: Sequence[str]) -> bool:
        """True when something was heard of an owner beside these."""
        return any(name.partition("/")[0] not in owners for name in self.repositories())

    def is_idle(self) -> bool:
        """True when no lane is due, held or put off, and no command waits."""
        with transaction(self._database, read=True) as connection:
            busy = connection.execute(
                sa.select(LANES.c.key).where(sa.or_(LANES.c.due_at.is_not(None), LANES.c.owner.is_not(None)))
            )
            return busy.first() is None

    def depth(self) -> Depth:
        """How much waits."""
        with transaction(self._database, read=True) as connection:
            now = self._now(connection)
            due = connection.execute(
                sa.select(sa.func.count(), sa.func.min(LANES.c.due_at)).where(
                    LANES.c.due_at <= now, LANES.c.owner.is_(None)
                )
            ).one()
            claimed = connection.execute(sa.select(sa.func.count()).where(LANES.c.owner.is_not(None))).scalar_one()
            return Depth(due[0], max(0.0, now - due[1]) if due[1] is not None else 0.0, claimed)

    # --- commands ---

    def take_command(self, repository: str, number: int, said: Said, *, proven: bool = True) -> bool:
        """Takes in a comment that no webhook brought; False when it is known or holds no command.

        `proven` is False when nobody can tell whether it was edited.
        """
        with transaction(self._database) as connection:
            return self._take_command(connection, repository, number, said, proven)

    def knows_command(self, repository: str, comment_id: int) -> bool:
        """True when that comment was taken in before."""
        where = (COMMANDS.c.repository == repository, COMMANDS.c.comment_id == comment_id)
        with transaction(self._database, read=True) as connection:
            return connection.execute(sa.select(COMMANDS.c.number).where(*where)).first() is not None

    def _take_command(
        self, connection: sa.Connection, repository: str, number: int, said: Said, proven: bool = True
    ) -> bool:
        if not read_commands(said.body):
            return False
        where = (COMMANDS.c.repository == repository, COMMANDS.c.comment_id == said.comment_id)
        if connection.execute(sa.select(COMMANDS.c.number).where(*where)).first():
            return False
        row = CommandRow(said.comment_id, repository, number, said.author, said.body, said.at, proven=proven)
        self._put_command(connection, row)
        return True

    def commands(self, repository: str, number: int) -> tuple[CommandRow, ...]:
        """The comments of a pull request that are not answered yet, oldest first."""
        query = (
            sa.select(COMMANDS.c.data)
            .where(COMMANDS.c.repository == repository, COMMANDS.c.number == number, COMMANDS.c.state != "answered")
            .order_by(COMMANDS.c.comment_id)
        )
        with transaction(self._database, read=True) as connection:
            return tuple(_COMMAND.validate_json(row.data) for row in connection.execute(query))

    def unseen_commands(self) -> tuple[CommandRow, ...]:
        """The comments that still lack our eyes."""
        query = sa.select(COMMANDS.c.data).where(COMMANDS.c.seen.is_(False)).order_by(COMMANDS.c.comment_id)
        with transaction(self._database, read=True) as connection:
            return tuple(_COMMAND.validate_json(row.data) for row in connection.execute(query))

    def mark_seen(self, row: CommandRow) -> None:
        """Notes that the comment has our eyes on it, and nothing else."""
        self._change_command(row, lambda known: replace(known, seen=True))

    def answer(self, row: CommandRow) -> None:
        """Stores what became of a comment's commands."""
        self._change_command(row, lambda known: replace(known, state=row.state, answers=row.answers))

    def _change_command(self, row: CommandRow, change: Callable[[CommandRow], CommandRow]) -> None:
        where = (COMMANDS.c.repository == row.repository, COMMANDS.c.comment_id == row.comment_id)
        with transaction(self._database) as connection:
            found = connection.execute(sa.select(COMMANDS.c.data).where(*where).with_for_update()).one()
            self._put_command(connection, change(_COMMAND.validate_json(found.data)))

    def _put_command(self, connection: sa.Connection, row: CommandRow) -> None:
        values = {"repository": row.repository, "comment_id": row.comment_id, "number": row.number, "state": row.state}
        put(connection, COMMANDS, [{**values, "seen": row.seen, "data": _COMMAND.dump_json(row).decode()}])

    # --- what we know ---

    def pull(self, repository: str, number: int) -> PullRecord:
        """What we know of a pull request; an empty record when nothing."""
        with transaction(self._database, read=True) as connection:
            return self._pull(connection, repository, number) or PullRecord(repository, number)

    def pulls(self, repository: str) -> tuple[PullRecord, ...]:
        """Every pull request of the repository that we know."""
        query = sa.select(PULLS.c.data).where(PULLS.c.repository == repository).order_by(PULLS.c.number)
        with transaction(self._database, read=True) as connection:
            return tuple(_PULL.validate_json(row.data) for row in connection.execute(query))

    def change_pull(self, repository: str, number: int, **changes: Any) -> PullRecord:
        """Changes fields of a pull request's record and returns it as it is then."""
        with transaction(self._database) as connection:
            record = self._pull(connection, repository, number, lock=True) or PullRecord(repository, number)
            record = replace(record, **changes)
            self._put_pull(connection, record)
            return record

    def _pull(
        self, connection: sa.Connection, repository: str, number: int, *, lock: bool = False
    ) -> PullRecord | None:
        query = sa.select(PULLS.c.data).where(PULLS.c.repository == repository, PULLS.c.number == number)
        row = connection.execute(query.with_for_update() if lock else query).first()
        return _PULL.validate_json(row.data) if row else None

    def _put_pull(self, connection: sa.Connection, record: PullRecord) -> None:
        values = {
            "repository": record.repository,
            "number": record.number,
            "state": record.state.value,
            "head": record.head,
        }
        put(connection, PULLS, [{**values, "data": _PULL.dump_json(record).decode()}])

    def prod(self, repository: str) -> ProdRecord:
        """What we know of a repository's prod."""
        with transaction(self._database, read=True) as connection:
            return self._prod(connection, repository)

    def change_prod(self, repository: str, **changes: Any) -> ProdRecord:
        """Changes fields of prod's record and returns it as it is then."""
        with transaction(self._database) as connection:
            record = replace(self._prod(connection, repository), **changes)
            self._put_prod(connection, record)
            return record

    def _put_prod(self, connection: sa.Connection, record: ProdRecord) -> None:
        data = _PROD.dump_json(record).decode()
        put(connection, PRODS, [{"repository": record.repository, "data": data}])

    def _prod(self, connection: sa.Connection, repository: str) -> ProdRecord:
        row = connection.execute(sa.select(PRODS.c.data).where(PRODS.c.repository == repository)).first()
        return _PROD.validate_json(row.data) if row else ProdRecord(repository)

    def repositories(self) -> tuple[str, ...]:
        """The repositories that something was heard of."""
        query = sa.union(sa.select(LANES.c.repository), sa.select(PRODS.c.repository))
        with transaction(self._database, read=True) as connection:
            return tuple(sorted(row[0] for row in connection.execute(query)))

    # --- runs and decisions ---

    def begin_run(self, run_id: str, lane: str, purpose: str, worker: str, pid: int, birth: str) -> None:
        """Notes a child process, so that the next worker can find it should this one die."""
        row = {"run_id": run_id, "lane": lane, "purpose": purpose, "worker": worker, "pid": pid, "birth": birth}
        with transaction(self._database) as connection:
            connection.execute(RUNS.insert().values({**row, "started_at": self._now(connection)}))

    def end_run(self, run_id: str, exit_code: int) -> None:
        """Notes that a child process is no more."""
        with transaction(self._database) as connection:
            ended = {"ended_at": self._now(connection), "exit_code": exit_code}
            connection.execute(RUNS.update().where(RUNS.c.run_id == run_id).values(ended))

    def open_runs(self) -> tuple[Run, ...]:
        """The runs that nobody saw end."""
        query = sa.select(RUNS).where(RUNS.c.ended_at.is_(None))
        with transaction(self._database, read=True) as connection:
            rows = connection.execute(query)
            return tuple(Run(row.run_id, row.lane, row.worker, row.pid, row.birth) for row in rows)

    def runs(self, lane: str) -> tuple[str, ...]:
        """The purposes of all runs of a lane, in order of their start."""
        query = sa.select(RUNS.c.purpose).where(RUNS.c.lane == lane).order_by(RUNS.c.started_at)
        with transaction(self._database, read=True) as connection:
            return tuple(row.purpose for row in connection.execute(query))

    def record(self, repository: str, number: int, who: str, what: str, plan_id: str = "") -> None:
        """Puts a decision on record: who, what, on which plan."""
        with transaction(self._database) as connection:
            row = {"at": self._now(connection), "repository": repository, "number": number, "who": who, "what": what}
            connection.execute(DECISIONS.insert().values({**row, "plan_id": plan_id}))

    def decisions(self, repository: str, number: int) -> tuple[tuple[str, str, str], ...]:
        """Who decided what on which plan, oldest first."""
        where = (DECISIONS.c.repository == repository, DECISIONS.c.number == number)
        with transaction(self._database, read=True) as connection:
            rows = connection.execute(sa.select(DECISIONS).where(*where).order_by(DECISIONS.c.id))
            return tuple((row.who, row.what, row.plan_id) for row in rows)

    def _now(self, connection: sa.Connection) -> float:
        return clock(connection).timestamp()
