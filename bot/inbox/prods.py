"""What we know of each repository's prod."""

from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec

import sqlalchemy as sa
from pydantic import TypeAdapter

from mergeplan.bot.branches import BranchRecord
from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.tables import PRODS
from mergeplan.bot.records import ProdRecord
from mergeplan.planner.state.database import put_rows

_PROD = TypeAdapter(ProdRecord)
_SELECT = sa.select(PRODS.c.data).where(PRODS.c.repository == sa.bindparam("repository"))
P = ParamSpec("P")


class Prods:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def get(self, repository: str) -> ProdRecord:
        """Return the record of a repository's prod; an empty one when there is none."""
        with self._database.reading() as connection:
            return read_prod(connection, repository)

    def list_keys(self) -> tuple[str, ...]:
        with self._database.reading() as connection:
            return tuple(connection.execute(sa.select(PRODS.c.repository).order_by(PRODS.c.repository)).scalars())

    def list_promoted(self) -> tuple[ProdRecord, ...]:
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(PRODS.c.data).order_by(PRODS.c.repository)).all()
        return tuple(record for row in rows if (record := _PROD.validate_json(row.data)).revision)

    def update(
        self,
        repository: str,
        transition: Callable[Concatenate[ProdRecord, P], ProdRecord],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> ProdRecord:
        """Apply a transition to prod's newest record, in one transaction, and return the next record."""
        with self._database.writing() as connection:
            record = transition(read_prod(connection, repository), *args, **kwargs)
            put_prod(connection, record)
            return record


def update_branch(prod: ProdRecord, branch: str, transition: Callable[[BranchRecord], BranchRecord]) -> ProdRecord:
    """Apply a transition to the record of a branch with an environment; leave an unknown branch alone."""
    changed = (transition(record) if record.branch == branch else record for record in prod.branches)
    return replace(prod, branches=tuple(changed))


def read_prod(connection: sa.Connection, repository: str) -> ProdRecord:
    row = connection.execute(_SELECT, {"repository": repository}).first()
    return _PROD.validate_json(row.data) if row else ProdRecord(repository)


def put_prod(connection: sa.Connection, record: ProdRecord) -> None:
    put_rows(connection, PRODS, [{"repository": record.repository, "data": _PROD.dump_json(record).decode()}])
