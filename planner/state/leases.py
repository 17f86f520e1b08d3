"""Leases: who may change a thing now; each comes with a token that only grows, so that a late writer is recognized."""

import os
import platform
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.errors import LeaseHeld, RequestError
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore, Transaction, split_chunks

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Lease:
    """The right to change `name`, given once under this token; whoever takes it over gets a greater one."""

    name: str
    token: int


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, since when and until when unless renewed."""

    name: str
    holder: str
    since: datetime
    expires_at: datetime


class Leases(ProjectStore):
    @contextmanager
    def hold(self, name: str, holder: str, *, ttl: float = 60.0, wait: float = 0.0) -> Iterator[Lease]:
        """Hold the lease on `name`, renewed; raise LeaseHeld, naming its holder, if it is not free in `wait` seconds.

        A lease that expired, or whose process on this machine has ended, is taken over.
        """
        lease = self._wait_for(name, holder, ttl, wait)
        ended = threading.Event()
        renewal = threading.Thread(
            target=self._renew_lease, args=(lease, ttl, ended), name=f"lease {name}", daemon=True
        )
        renewal.start()
        try:
            yield lease
        finally:
            ended.set()
            renewal.join()
            # A database that does not answer now has been reported already, or lets the lease expire.
            with suppress(RequestError), self._database.writing() as tx:
                tx.execute(_update_lease(tx, lease.name).where(t.leases.c.token == lease.token).values(holder=""))

    def holder(self, name: str) -> Holder | None:
        """Who holds the lease now; None when it is free or expired, or the process has ended."""
        with self._database.reading() as tx:
            row = tx.execute(tx.select(t.leases).where(t.leases.c.name == name)).one_or_none()
            if row is None or not row.holder or row.expires_at <= tx.now():
                return None
            if has_ended(row.machine, row.pid):
                return None
            return Holder(name, row.holder, row.since, row.expires_at)

    def list_holders(self) -> frozenset[str]:
        with self._database.reading() as tx:
            statement = tx.select(t.leases).where(t.leases.c.holder != "", t.leases.c.expires_at > tx.now())
            return frozenset(row.holder for row in tx.execute(statement))

    def tokens(self, names: Collection[str]) -> Mapping[str, int]:
        """Name -> the token that was given last; 0 for a lease that nobody has held yet."""
        tokens = dict.fromkeys(names, 0)
        with self._database.reading() as tx:
            for chunk in split_chunks(sorted(tokens)):
                for row in tx.execute(tx.select(t.leases).where(t.leases.c.name.in_(chunk))):
                    tokens[row.name] = row.token
        return tokens

    def check(self, lease: Lease) -> None:
        with self._database.reading() as tx:
            check_lease(tx, lease)

    def _wait_for(self, name: str, holder: str, ttl: float, wait: float) -> Lease:
        deadline = time.monotonic() + wait
        while True:
            taken = self._take_lease(name, holder, ttl)
            if isinstance(taken, Lease):
                return taken
            remaining_seconds = deadline - time.monotonic()
            if remaining_seconds <= 0:
                message = f"`{name}` is being changed by {taken.holder} since {taken.since:%Y-%m-%d %H:%M:%S} UTC."
                raise LeaseHeld(message, hint="Wait for it to end, or cancel it.")
            time.sleep(min(POLL_SECONDS, remaining_seconds))

    def _take_lease(self, name: str, holder: str, ttl: float) -> Lease | Holder:
        with self._database.writing() as tx:
            current_time = tx.now()
            free = {
                "token": 0,
                "holder": "",
                "machine": "",
                "pid": 0,
                "since": current_time,
                "expires_at": current_time,
            }
            tx.put(t.leases, [{"name": name, **free}], update=False)
            row = tx.execute(_select_for_update(tx, name)).one()
            if row.holder and row.expires_at > current_time and not has_ended(row.machine, row.pid):
                return Holder(name, row.holder, row.since, row.expires_at)
            values = {
                "token": row.token + 1,
                "holder": holder or "somebody",
                "machine": process_identity(),
                "pid": os.getpid(),
            }
            until = current_time + timedelta(seconds=ttl)
            tx.execute(_update_lease(tx, name).values(**values, since=current_time, expires_at=until))
            return Lease(name, row.token + 1)

    def _renew_lease(self, lease: Lease, ttl: float, end_event: threading.Event) -> None:
        while not end_event.wait(ttl / 3):
            # A database that is away for a moment does not end the lease; one that is away for long lets it expire,
            # and every later write under it is refused.
            with suppress(RequestError), self._database.writing() as tx:
                until = tx.now() + timedelta(seconds=ttl)
                statement = _update_lease(tx, lease.name).where(t.leases.c.token == lease.token)
                tx.execute(statement.values(expires_at=until))


def check_lease(tx: Transaction, lease: Lease) -> None:
    """LeaseHeld unless the lease is still held; nobody can take it over before the transaction ends."""
    row = tx.execute(_select_for_update(tx, lease.name)).one_or_none()
    if row is None or row.token != lease.token or not row.holder:
        whose = f"{row.holder} took it over" if row is not None and row.holder else "it has been given back"
        raise LeaseHeld(f"The right to change `{lease.name}` was lost: {whose}.", hint="Run the plan again.")


def _select_for_update(tx: Transaction, name: str) -> sa.Select[Any]:
    return tx.select(t.leases).where(t.leases.c.name == name).with_for_update()


def _update_lease(tx: Transaction, name: str) -> sa.Update:
    return tx.update(t.leases).where(t.leases.c.name == name)


def _machine_id() -> str:
    """Return what distinguishes one set of process numbers from another; '' leaves leases to time."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


MACHINE = _machine_id()


def process_identity() -> str:
    """Return this machine and the start of this process, distinct from a later one of the same number."""
    return f"{MACHINE} since {_began(os.getpid()) or ''}" if MACHINE else ""


def has_ended(machine: str, pid: int) -> bool:
    """Return True when the process that wrote `machine` was one of this machine's and has ended."""
    place, _, began = machine.partition(" since ")
    if not place or place != MACHINE:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(began) and _began(pid) not in (None, began)


def _began(pid: int) -> str | None:
    """Return the clock tick at which a process began; '' for one that has ended, None when unknown.

    One that was killed keeps its number until its parent has asked how it ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()  # its name, before that, may hold anything
    return "" if state in "ZX" else fields[18]
