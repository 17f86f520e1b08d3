"""What every part of the store rests on: one database, one project, transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import sqlalchemy as sa

from planner.state.database import decoding, open_upgraded, transaction

CHUNK = 500  # values in one IN: far below what either database allows


class Records:
    """One project's rows in one database; `project` keeps the repositories of a shared database apart."""

    def __init__(self, url: str, project: str = "") -> None:
        self.project = project
        self._database = open_upgraded(url, "planner.state")

    def close(self) -> None:
        """Let go of the connections."""
        self._database.dispose()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with transaction(self._database, read=True) as connection, decoding(self._database):
            yield connection

    def _writing(self) -> AbstractContextManager[sa.Connection]:
        return transaction(self._database)

    def _own(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.project == self.project

    def _select(self, table: sa.Table) -> sa.Select[Any]:
        return sa.select(table).where(self._own(table))


def chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """The values a few hundred at a time."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
