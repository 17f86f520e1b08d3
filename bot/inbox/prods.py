"""What we know of each repository's prod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.tables import PRODS
from mergeplan.bot.records import ProdRecord
from mergeplan.planner.state.database import put

_PROD = TypeAdapter(ProdRecord)


class Prods:
    """The records of every prod."""

    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def get(self, repository: str) -> ProdRecord:
        """What we know of a repository's prod; an empty record when nothing."""
        with self._database.reading() as connection:
            return read_prod(connection, repository)

    def list_promoted(self) -> tuple[ProdRecord, ...]:
        """What we know of every prod that has a revision."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(PRODS.c.data).order_by(PRODS.c.repository)).all()
        return tuple(record for row in rows if (record := _PROD.validate_json(row.data)).revision)

    def change(self, repository: str, **changes: Any) -> ProdRecord:
        """Changes fields of prod's record and returns it as it is then."""
        with self._database.writing() as connection:
            record = replace(read_prod(connection, repository), **changes)
            put_prod(connection, record)
            return record

    def change_branch(self, repository: str, branch: str, **changes: Any) -> ProdRecord:
        """Changes fields of what is known of a branch with an environment of its own; a branch that is not known is
        left alone."""
        with self._database.writing() as connection:
            record = change_branch_record(read_prod(connection, repository), branch, **changes)
            put_prod(connection, record)
            return record


def change_branch_record(prod: ProdRecord, branch: str, **changes: Any) -> ProdRecord:
    """Prod's record with other values of some fields of a branch."""
    changed = (replace(record, **changes) if record.branch == branch else record for record in prod.branches)
    return replace(prod, branches=tuple(changed))


def read_prod(connection: sa.Connection, repository: str) -> ProdRecord:
    """What we know of a repository's prod, in the caller's transaction."""
    row = connection.execute(sa.select(PRODS.c.data).where(PRODS.c.repository == repository)).first()
    return _PROD.validate_json(row.data) if row else ProdRecord(repository)


def put_prod(connection: sa.Connection, record: ProdRecord) -> None:
    """Stores prod's record, in the caller's transaction."""
    put(connection, PRODS, [{"repository": record.repository, "data": _PROD.dump_json(record).decode()}])
