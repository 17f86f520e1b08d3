"""The queue of work: one key for each pull request and each prod, due from some time on, claimed by one worker."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.tables import COMMANDS, DELIVERIES, PRODS, QUEUE
from mergeplan.planner.state.database import put_rows

LEASE_SECONDS = 30.0
COMMANDS_MAX = 200  # unanswered ones that are looked for among the keys
BRANCHES = -1  # in place of a pull request's number: the branches that have environments of their own
CATALOG = -2  # or: the catalog of what prod shows
APART = {BRANCHES: "branches", CATALOG: "catalog"}
_OF_KEYS = (
    sa.select(QUEUE)
    .where(QUEUE.c.key.in_(sa.bindparam("keys", expanding=True)))
    .order_by(QUEUE.c.key)
    .with_for_update()
)
_MAKE_DUE = (
    QUEUE.update()
    .where(QUEUE.c.key == sa.bindparam("of_key"))
    .values(wanted=sa.bindparam("wanted"), due_at=sa.bindparam("due_at"))
)


@dataclass(frozen=True)
class Job:
    """A claimed key; `seen` is the last news it covers.

    It is pull request `number` of the repository, or (0) its prod, or (`BRANCHES`) the environments of its other
    branches, or (`CATALOG`) the catalog of prod.
    """

    key: str
    repository: str
    number: int
    wanted: int
    seen: int
    attempts: int
    worker: str = ""  # who claimed it
    trace: str = ""  # the W3C traceparent of the last news that it covers


@dataclass(frozen=True)
class Depth:
    """How much waits: keys that are due, and for how long the oldest has been."""

    due: int
    oldest_seconds: float
    claimed: int


@dataclass(frozen=True)
class Due:
    """A request to work on a key; after a push, it waits for a settling time."""

    repository: str
    number: int
    pushed: bool = False
    in_seconds: float = 0.0


def queue_key(repository: str, number: int) -> str:
    """Return `owner/name#7`, `owner/name@prod`, `owner/name@branches` or `owner/name@catalog`."""
    if number in APART:
        return f"{repository}@{APART[number]}"
    return f"{repository}#{number}" if number else f"{repository}@prod"


class Queue:
    def __init__(self, database: InboxDatabase, *, settle_seconds: float, lease_seconds: float) -> None:
        self._database = database
        self._settle = settle_seconds
        self._lease = lease_seconds
        self._listeners: list[Callable[[], None]] = []

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call the listener when this process took something in."""
        self._listeners.append(listener)

    def notify(self) -> None:
        for listener in self._listeners:
            listener()

    def wake(self, repository: str, number: int, *, in_seconds: float = 0.0) -> None:
        with self._database.writing() as connection:
            self.make_due(connection, repository, number, in_seconds=in_seconds)
        self.notify()

    def make_due(self, connection: sa.Connection, repository: str, number: int, *, in_seconds: float = 0.0) -> None:
        """Make a key due, in the caller's transaction."""
        due = Due(repository, number, in_seconds=in_seconds)
        self.make_all_due(connection, [due], database_seconds(connection))

    def make_all_due(self, connection: sa.Connection, dues: Sequence[Due], at: float) -> None:
        """Make keys due in the caller's transaction, in one order: two such never wait for each other."""
        if not dues:
            return
        named = {queue_key(due.repository, due.number): due for due in dues}
        zero = {"wanted": 0, "attempts": 0, "error": ""}
        fresh = [
            {"key": key, "repository": d.repository, "number": d.number, **zero} for key, d in sorted(named.items())
        ]
        put_rows(connection, QUEUE, fresh, update=False)
        key_rows = connection.execute(_OF_KEYS, {"keys": sorted(named)})
        rows = {row.key: (row.wanted, row.due_at, row.settle_until) for row in key_rows}
        for due in dues:
            key = queue_key(due.repository, due.number)
            request_count, due_at, settle_until = rows[key]
            rows[key] = request_count + 1, self._due_at(due, at, due_at, settle_until), settle_until
        changed = [
            {"of_key": key, "wanted": request_count, "due_at": due_at}
            for key, (request_count, due_at, _) in rows.items()
        ]
        connection.execute(_MAKE_DUE, changed)

    def _due_at(self, due: Due, at: float, due_at: float | None, settle_until: float | None) -> float:
        requested_at = at + due.in_seconds
        if due_at is None:
            return requested_at
        if settle_until is None:
            return min(due_at, requested_at)
        # A burst of pushes: each moves the next plan off a little, but not for ever.
        return min(at + self._settle, settle_until) if due.pushed else max(due_at, requested_at)

    def claim(self, worker: str, only: Sequence[str] = (), but: Sequence[str] = ()) -> Job | None:
        """Claim a key that is due and that no living worker holds.

        A pull request with a command goes first, because a person waits for the answer. Otherwise the repository of
        which least is worked on has its turn, and of that the key that has been due longest: many pull requests of one
        repository do not keep the others waiting. `only` names repositories, where it names any; `but` names owners
        whose keys have to wait.
        """
        with self._database.reading() as connection:
            if not connection.execute(_select_claimable(connection, only, but).limit(1)).first():
                return None
        with self._database.writing() as connection:
            query = _select_claimable(connection, only, but).order_by(*_claim_order(connection)).limit(1)
            row = connection.execute(query.with_for_update(skip_locked=True)).first()
            if row is None:
                return None
            until = database_seconds(connection) + self._lease
            claim_values = {"owner": worker, "owned_until": until, "settle_until": None}
            connection.execute(QUEUE.update().where(QUEUE.c.key == row.key).values(claim_values))
            last = sa.select(sa.func.max(DELIVERIES.c.id)).where(DELIVERIES.c.queue_key == row.key)
            delivery_id = connection.execute(last).scalar() or 0
            trace = (
                connection.execute(sa.select(DELIVERIES.c.trace).where(DELIVERIES.c.id == delivery_id)).scalar() or ""
            )
        return Job(row.key, row.repository, row.number, row.wanted, delivery_id, row.attempts, worker, trace)

    def renew(self, worker: str, keys: Sequence[str]) -> tuple[str, ...]:
        """Extend a worker's claims on these keys, and return the keys that it holds no longer.

        A claim that ended may have been taken over by another worker. A key that could not be released, the database
        being out of reach, is free when its claim ends.
        """
        claimed_rows = sa.and_(QUEUE.c.owner == worker, QUEUE.c.key.in_(keys))
        with self._database.writing() as connection:
            until = database_seconds(connection) + self._lease
            connection.execute(QUEUE.update().where(claimed_rows).values(owned_until=until))
            still = set(connection.execute(sa.select(QUEUE.c.key).where(claimed_rows)).scalars())
        return tuple(key for key in keys if key not in still)

    def holds(self, job: Job) -> bool:
        with self._database.reading() as connection:
            owner = connection.execute(sa.select(QUEUE.c.owner).where(QUEUE.c.key == job.key)).scalar()
        return owner == job.worker

    def release(self, job: Job, *, settle: bool = False, again_in: float | None = None, error: str = "") -> None:
        """Release a key, unless another worker has it by now: done, or due again after news, a pause or a failure."""
        with self._database.writing() as connection:
            row = connection.execute(sa.select(QUEUE).where(QUEUE.c.key == job.key).with_for_update()).one()
            if row.owner != job.worker:
                return
            at = database_seconds(connection)
            due: float | None = at if row.wanted != job.wanted else None
            if again_in is not None:
                due = min(due, at + again_in) if due is not None and not error else at + again_in
            values: dict[str, Any] = {"settle_until": None}
            if settle:
                due, values["settle_until"] = at + self._settle, at + 10 * self._settle
            attempts = row.attempts + 1 if error else 0
            values |= {"due_at": due, "owner": None, "owned_until": None, "attempts": attempts, "error": error[:2000]}
            connection.execute(QUEUE.update().where(QUEUE.c.key == job.key).values(values))
        if due is not None:
            self.notify()

    def release_of(self, worker: str) -> None:
        """Free all keys of a worker that has ended, and make each due at once."""
        with self._database.writing() as connection:
            freed = {"owner": None, "owned_until": None, "due_at": database_seconds(connection)}
            connection.execute(QUEUE.update().where(QUEUE.c.owner == worker).values(freed))

    def owners(self) -> tuple[str, ...]:
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(QUEUE.c.owner).where(QUEUE.c.owner.is_not(None)).distinct())
            return tuple(row.owner for row in rows)

    def has_plans(self, repositories: Sequence[str]) -> bool:
        """Return True while a key of the repositories is due or put off."""
        query = sa.select(QUEUE.c.key).where(QUEUE.c.repository.in_(repositories), QUEUE.c.due_at.is_not(None))
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None

    def is_idle(self) -> bool:
        """Return True when no key is due, held or put off."""
        busy = sa.select(QUEUE.c.key).where(sa.or_(QUEUE.c.due_at.is_not(None), QUEUE.c.owner.is_not(None)))
        with self._database.reading() as connection:
            return connection.execute(busy).first() is None

    def depth(self) -> Depth:
        with self._database.reading() as connection:
            at = database_seconds(connection)
            waits = sa.select(sa.func.count(), sa.func.min(QUEUE.c.due_at))
            due = connection.execute(waits.where(QUEUE.c.due_at <= at, QUEUE.c.owner.is_(None))).one()
            claimed = connection.execute(sa.select(sa.func.count()).where(QUEUE.c.owner.is_not(None))).scalar_one()
            return Depth(due[0], max(0.0, at - due[1]) if due[1] is not None else 0.0, claimed)

    def repositories(self) -> tuple[str, ...]:
        query = sa.union(sa.select(QUEUE.c.repository), sa.select(PRODS.c.repository))
        with self._database.reading() as connection:
            return tuple(sorted(row[0] for row in connection.execute(query)))


def _select_claimable(connection: sa.Connection, only: Sequence[str], but: Sequence[str]) -> sa.Select[Any]:
    at = database_seconds(connection)
    free = sa.or_(QUEUE.c.owner.is_(None), QUEUE.c.owned_until < at)
    query = sa.select(QUEUE).where(QUEUE.c.due_at <= at, free)
    if only:
        query = query.where(QUEUE.c.repository.in_(only))
    for owner in but:
        query = query.where(sa.not_(QUEUE.c.repository.startswith(f"{owner}/", autoescape=True)))
    return query


def _claim_order(connection: sa.Connection) -> tuple[sa.ColumnElement[Any], ...]:
    claims = sa.select(QUEUE.c.repository).where(QUEUE.c.owner.is_not(None))
    jobs_by_repository = Counter(connection.execute(claims).scalars())
    commands = sa.select(COMMANDS.c.repository, COMMANDS.c.number).where(COMMANDS.c.state == "new").distinct()
    keys = [queue_key(row.repository, row.number) for row in connection.execute(commands.limit(COMMANDS_MAX))]
    jobs = sa.case(jobs_by_repository, value=QUEUE.c.repository, else_=0) if jobs_by_repository else sa.literal(0)
    return QUEUE.c.key.in_(keys).desc(), jobs, QUEUE.c.due_at
