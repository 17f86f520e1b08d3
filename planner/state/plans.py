"""Plans that were shown to somebody, and what people said about their changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from planner.errors import RequestError
from planner.plan.build import Category, Word
from planner.serial import Json
from planner.state import tables as t
from planner.state.database import clock, put
from planner.state.promotions import Promotions


@dataclass(frozen=True)
class SavedPlan:
    """A plan as shown: how to make it again (`options`), what it stood on (`components`), what it said (`result`)."""

    id: str
    environment: str
    status: str
    options: Json
    components: Json
    result: Json
    tables: tuple[str, ...]
    created_at: datetime


class Plans(Promotions):
    """The plans and words of one project."""

    def save_plan(
        self,
        id: str,
        environment: str,
        *,
        tables: Collection[str] = (),
        options: Json = None,
        components: Json = None,
        result: Json = None,
        status: str = "open",
        replace: bool = True,
    ) -> None:
        """Keep a plan, in place of an earlier one with this id unless `replace` is false.

        For a day the janitor leaves the tables that it needs.
        """
        row: dict[str, Any] = {"project": self.project, "id": id, "environment": environment, "status": status}
        row |= {"options": options or {}, "components": components or {}, "result": result or {}}
        with self._writing() as connection:
            put(
                connection,
                t.plans,
                [{**row, "tables": sorted(tables), "created_at": clock(connection)}],
                update=replace,
            )

    def close_plan(self, id: str, status: str, result: Json = None) -> None:
        """Say what became of a plan: `applied`, `failed`, `stale`."""
        values = {"status": status} | ({} if result is None else {"result": result})
        with self._writing() as connection:
            connection.execute(sa.update(t.plans).where(self._own(t.plans), t.plans.c.id == id).values(values))

    def plan(self, id: str) -> SavedPlan:
        """The plan of this id; RequestError when there is none."""
        with self._reading() as connection:
            row = connection.execute(self._select(t.plans).where(t.plans.c.id == id)).one_or_none()
            if row is None:
                raise RequestError(f"There is no plan `{id}`.", hint="Make one with `mergeplan plan`.")
            return _saved(row)

    def plans_since(self, since: datetime) -> tuple[SavedPlan, ...]:
        """The plans made at or after a time, oldest first."""
        mine = self._select(t.plans).where(t.plans.c.created_at >= since).order_by(t.plans.c.created_at)
        with self._reading() as connection:
            return tuple(_saved(row) for row in connection.execute(mine))

    def words(self, environment: str) -> tuple[Word, ...]:
        """What people said about changes in this environment, by model."""
        words = t.words
        mine = self._select(words).where(words.c.environment == environment)
        with self._reading() as connection:
            rows = connection.execute(mine.order_by(words.c.model, words.c.old, words.c.new)).all()
            return tuple(Word(row.model, Category(row.category), row.old, row.new, row.who, row.at) for row in rows)

    def record_word(self, environment: str, word: Word) -> None:
        """Keep a person's word, in place of an earlier one about the same change; dated now when it bears no date."""
        row = {"project": self.project, "environment": environment, "model": word.model, "old": word.old}
        row |= {"new": word.new, "category": word.category.value, "who": word.who}
        with self._writing() as connection:
            put(connection, t.words, [{**row, "at": word.at or clock(connection)}])

    def forget_words(self, environment: str, model: str | None = None) -> None:
        """Forget what was said in this environment, about one model or about all."""
        mine = sa.delete(t.words).where(self._own(t.words), t.words.c.environment == environment)
        with self._writing() as connection:
            connection.execute(mine if model is None else mine.where(t.words.c.model == model))


def _saved(row: sa.Row[Any]) -> SavedPlan:
    return SavedPlan(
        row.id,
        row.environment,
        row.status,
        row.options,
        row.components,
        row.result,
        tuple(row.tables),
        row.created_at,
    )
