"""The categories that people put in place of what mergeplan would decide about a change."""

from mergeplan.planner.plan.build import Category, Override
from mergeplan.planner.plan.change import Days
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore


class Overrides(ProjectStore):
    """The category overrides of one project, each of one change of one model in one environment."""

    def list_for(self, environment: str) -> tuple[Override, ...]:
        overrides = t.overrides
        with self._database.reading() as tx:
            statement = tx.select(overrides).where(overrides.c.environment == environment)
            rows = tx.execute(statement.order_by(overrides.c.model, overrides.c.old, overrides.c.new)).all()
            return tuple(
                Override(
                    row.model, Category(row.category), row.old, row.new, row.who, row.at,
                    Days(row.since, row.until) if row.restates else None,
                )
                for row in rows
            )  # fmt: skip

    def record(self, environment: str, override: Override) -> None:
        """Keep an override, in place of an earlier one of the same change; dated now when it bears no date."""
        row: dict[str, object] = {"environment": environment, "model": override.model, "old": override.old}
        row |= {"new": override.new, "category": override.category.value, "who": override.who}
        days = override.restates
        row |= {"restates": days is not None, "since": days and days.start, "until": days and days.end}
        with self._database.writing() as tx:
            tx.put(t.overrides, [{**row, "at": override.at or tx.now()}])

    def forget(self, environment: str, model: str) -> None:
        with self._database.writing() as tx:
            statement = tx.delete(t.overrides).where(t.overrides.c.environment == environment)
            tx.execute(statement.where(t.overrides.c.model == model))

    def forget_restatement(self, environment: str, model: str | None = None) -> None:
        about = (t.overrides.c.environment == environment, t.overrides.c.restates)
        with self._database.writing() as tx:
            statement = tx.delete(t.overrides).where(*about)
            tx.execute(statement if model is None else statement.where(t.overrides.c.model == model))
