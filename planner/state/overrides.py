"""The categories that people put in place of what mergeplan would decide about a change."""

from __future__ import annotations

from planner.plan.build import Category, Word
from planner.state import tables as t
from planner.state.transaction import Database


class Overrides:
    """The category overrides of one project, each of one change of one model in one environment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, environment: str) -> tuple[Word, ...]:
        """The overrides of changes in this environment, by model."""
        words = t.words
        with self._database.reading() as tx:
            mine = tx.select(words).where(words.c.environment == environment)
            rows = tx.execute(mine.order_by(words.c.model, words.c.old, words.c.new)).all()
            return tuple(Word(row.model, Category(row.category), row.old, row.new, row.who, row.at) for row in rows)

    def record(self, environment: str, word: Word) -> None:
        """Keep an override, in place of an earlier one of the same change; dated now when it bears no date."""
        row = {"environment": environment, "model": word.model, "old": word.old}
        row |= {"new": word.new, "category": word.category.value, "who": word.who}
        with self._database.writing() as tx:
            tx.put(t.words, [{**row, "at": word.at or tx.now()}])

    def forget(self, environment: str, model: str | None = None) -> None:
        """Drop the overrides in this environment, of one model or of all."""
        with self._database.writing() as tx:
            mine = tx.delete(t.words).where(t.words.c.environment == environment)
            tx.execute(mine if model is None else mine.where(t.words.c.model == model))
