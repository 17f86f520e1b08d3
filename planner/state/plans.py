"""Plans that were shown or are being applied."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.errors import RequestError
from mergeplan.planner.serial import Json
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore

OPEN = "open"
ADOPTING = "adopting"  # its tables may be half moved


@dataclass(frozen=True)
class SavedPlan:
    """A plan as shown: how to make it again (`options`), what it stood on (`components`), what it shows (`result`)."""

    id: str
    environment: str
    status: str
    options: Json
    components: Json
    result: Json
    tables: tuple[str, ...]
    created_at: datetime


class Plans(ProjectStore):
    """The plans of one project; for a day, and while it is applied, the janitor leaves the tables that one needs."""

    def save(
        self, id: str, environment: str, *, tables: Collection[str] = (), options: Json = None, components: Json = None
    ) -> None:
        """Keep a plan, in place of an earlier one with this id; its result comes when it is closed."""
        row = {"id": id, "environment": environment, "tables": sorted(tables)}
        self._put_plan({**row, "options": options or {}, "components": components or {}})

    def begin_adoption(self, id: str, environment: str, tables: Collection[str], journal: Json) -> None:
        """Keep a plan that adopts tables, with what undoes it, as one that is being carried out."""
        row = {"id": id, "environment": environment, "tables": sorted(tables)}
        self._put_plan({**row, "status": ADOPTING, "options": journal})

    def ensure(self, id: str, environment: str, *, tables: Collection[str] = ()) -> None:
        """Keep a plan that is applied without having been saved; one with this id stays as it is."""
        self._put_plan({"id": id, "environment": environment, "tables": sorted(tables)}, update=False)

    def _put_plan(self, values: dict[str, Any], *, update: bool = True) -> None:
        with self._database.writing() as tx:
            row = {"status": OPEN, "options": {}, "components": {}, "result": {}, "created_at": tx.now(), **values}
            tx.put(t.plans, [row], update=update)

    def close(self, id: str, status: str, result: Json = None) -> None:
        """Keep what became of a plan: `applied`, `failed`, `stale`."""
        values = {"status": status} | ({} if result is None else {"result": result})
        with self._database.writing() as tx:
            tx.execute(tx.update(t.plans).where(t.plans.c.id == id).values(values))

    def get(self, id: str) -> SavedPlan:
        """Return the plan of this id; RequestError when there is none."""
        with self._database.reading() as tx:
            row = tx.execute(tx.select(t.plans).where(t.plans.c.id == id)).one_or_none()
            if row is None:
                raise RequestError(f"There is no plan `{id}`.", hint="Make one with `mergeplan plan`.")
            return _build_saved_plan(row)

    def list_by_status(self, status: str) -> tuple[SavedPlan, ...]:
        return self._list_plans(t.plans.c.status == status)

    def since(self, since: datetime, ids: Collection[str] = ()) -> tuple[SavedPlan, ...]:
        return self._list_plans(sa.or_(t.plans.c.created_at >= since, t.plans.c.id.in_(ids)))

    def _list_plans(self, condition: sa.ColumnElement[bool]) -> tuple[SavedPlan, ...]:
        with self._database.reading() as tx:
            statement = tx.select(t.plans).where(condition).order_by(t.plans.c.created_at)
            return tuple(_build_saved_plan(row) for row in tx.execute(statement))


def _build_saved_plan(row: sa.Row[Any]) -> SavedPlan:
    return SavedPlan(
        row.id, row.environment, row.status, row.options, row.components, row.result, tuple(row.tables), row.created_at
    )
