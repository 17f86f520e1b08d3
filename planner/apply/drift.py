"""Drift: views and tables of an environment that were dropped or changed outside mergeplan.

The catalog is listed schema by schema, which costs a few statements for any number of models. To describe each view, or
to see whether each table has rows, costs a statement each, and is an option. A table that is gone holds no time: it is
forgotten, and the next run creates and computes it. An object that replaced a view belongs to its creator: it is
reported, and never replaced.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from mergeplan.planner.apply.physical_tables import list_objects
from mergeplan.planner.apply.promotion.own_views import versions_of
from mergeplan.planner.engine.protocol import Engine, ViewText
from mergeplan.planner.errors import Refused
from mergeplan.planner.model.model import Column
from mergeplan.planner.model.table_format import FORMATS, TABLE_FORMATS
from mergeplan.planner.naming import quote_name
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.parsing.render import stage_statements
from mergeplan.planner.parsing.sql.macro_scope import EVALUATING
from mergeplan.planner.snapshot.environment import PROD, Environment, View
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore

RESTORED = "If the state is a restored copy, leave it and plan again. If somebody changed the view, drop it, then"


class DriftKind(StrEnum):
    VIEW_GONE = "view_gone"
    VIEW_MOVED = "view_moved"  # it reads something else
    OTHER_VERSION = "other_version"  # it reads a version of the model's table that the state does not know
    NO_VIEW = "no_view"  # a table has its name
    TABLE_GONE = "table_gone"
    TABLE_EMPTIED = "table_emptied"


@dataclass(frozen=True)
class Drift:
    environment: str
    model: str
    name: str
    kind: DriftKind
    keeps_history: bool = False
    restatable: bool = False

    @property
    def is_mendable(self) -> bool:
        """False if only a person can remove it."""
        return self.kind in (DriftKind.VIEW_GONE, DriftKind.TABLE_GONE)

    @property
    def fact(self) -> str:
        return self._fact_and_remedy[0]

    @property
    def sentence(self) -> str:
        """The difference, and what to do."""
        fact, remedy = self._fact_and_remedy
        return f"{fact} {remedy}"

    @property
    def _fact_and_remedy(self) -> tuple[str, str]:
        view, run = f"The view `{self.name}` of `{self.environment}`", f"`mergeplan run {self.environment} --refresh`"
        match self.kind:
            case DriftKind.VIEW_GONE:
                return f"{view} is gone from the catalog.", f"{run} restores it."
            case DriftKind.VIEW_MOVED:
                fact = f"{view} does not show the model's table any more: it was changed by hand."
                return fact, f"Drop it, then {run} restores it."
            case DriftKind.OTHER_VERSION:
                return f"{view} shows another version of the model's table than the state says.", f"{RESTORED} {run}."
            case DriftKind.NO_VIEW:
                remedy = f"Rename or drop that table, then {run} creates the view."
                return f"{view} is gone, and a table has its name.", remedy
            case DriftKind.TABLE_GONE:
                table = f"The table `{self.name}` of `{self.model}` in `{self.environment}` is gone from the catalog."
                lost = " The history that it held is lost." if self.keeps_history else ""
                return f"{table}{lost}", f"{run} creates and computes it."
            case DriftKind.TABLE_EMPTIED:
                table = f"The table `{self.name}` of `{self.model}` in `{self.environment}`"
                return f"{table} holds no rows, although its batches wrote some.", self._refill_advice

    @property
    def _refill_advice(self) -> str:
        if self.restatable:
            plan = "mergeplan plan" if self.environment == PROD else f"mergeplan plan {self.environment}"
            return f"`{plan} --restate-model {self.model}` computes it and what reads it again."
        drop = f"Drop the table, and `mergeplan run {self.environment} --refresh` creates and computes it."
        formats = ", ".join(FORMATS[name].title for name in TABLE_FORMATS)
        restore = f"Restore an earlier version of it ({formats}). Without one its history is lost: "
        return f"{restore}{drop[0].lower()}{drop[1:]}" if self.keeps_history else drop


def find_drift(
    environment: Environment, prod: Environment, engine: Engine, *, describe: bool = False
) -> tuple[Drift, ...]:
    """Return the differences of an environment from the state, tables first; tables that prod shows too are prod's.

    With `describe` each view is checked too: whether it is a view, and of which table. A table that an earlier run
    forgot and did not create again counts as gone.
    """
    shown = (
        {snapshot.table for snapshot in prod.snapshots.values()} if environment.name != prod.name else frozenset[str]()
    )
    views = environment.views_by_name
    own_snapshots = [
        snapshot
        for snapshot in environment.snapshots.values()
        if snapshot.kind.has_view and snapshot.table not in shown
    ]
    object_names = list_objects((*views, *(snapshot.table for snapshot in own_snapshots)), engine)
    tables = [
        Drift(environment.name, snapshot.name, snapshot.table, DriftKind.TABLE_GONE, snapshot.kind.keeps_history)
        for snapshot in sorted(own_snapshots, key=lambda snapshot: snapshot.name)
        if snapshot.table.lower() not in object_names
    ]
    missing = [view for _, view in sorted(views.items()) if view.name.lower() not in object_names]
    kinds = [(view, DriftKind.VIEW_GONE) for view in missing]
    if describe:
        present = (view for _, view in sorted(views.items()) if view not in missing)
        kinds += [(view, kind) for view in present if (kind := _drift_of(view, engine))]
    return (*tables, *(Drift(environment.name, view.model, view.name, kind) for view, kind in kinds))


def check_catalog(environment: Environment, engine: Engine) -> None:
    """Raise Refused if the catalog has no table of the environment: it is another one, or permissions hide them.

    What was computed there would count as computed in the environment's own.
    """
    tables = (snapshot.table.lower() for snapshot in environment.snapshots.values() if snapshot.kind.is_stored)
    first = next(tables, "")  # mostly it is there, and the others are not looked at
    if not first or engine.catalog.owner(first) is not None:
        return
    names = {first, *tables}
    if not list_objects(names, engine) & names:
        hint = "Use the gateway, the catalog and the user with which they were built. If they were dropped, run "
        hint += f"`mergeplan run {environment.name} --refresh`: it computes them again."
        raise Refused(f"No table of `{environment.name}` is in this catalog.", hint=hint)


def find_emptied(
    environment: Environment, prod: Environment, store: StateStore, engine: Engine, *, gone_tables: Collection[str] = ()
) -> tuple[Drift, ...]:
    """Return the tables of an environment without a row although batches wrote some, without those that prod shows.

    It costs a query for each table. A table whose merge may delete rows is left out, because the merge may have emptied
    it.
    """
    shown = {snapshot.table for snapshot in prod.snapshots.values()} if environment.name != prod.name else set[str]()
    snapshots = [one for one in environment.snapshots.values() if one.kind.is_stored]
    own_snapshots = {one.table: one for one in snapshots if one.table not in shown and one.table not in gone_tables}
    loaded, costs = store.intervals.load_timelines(own_snapshots), store.costs.load(own_snapshots)
    emptied = []
    for table, snapshot in sorted(own_snapshots.items()):
        model = snapshot.model
        had_rows = loaded[table] and table in costs and costs[table].rows
        if not had_rows or "DELETE" in model.by_key.when_matched.upper():
            continue
        engine.tables.refresh(table)
        if not engine.fetch(f"SELECT 1 FROM {quote_name(table)}", limit=1).rows:
            difference = Drift(environment.name, model.name, table, DriftKind.TABLE_EMPTIED, model.kind.keeps_history)
            emptied.append(replace(difference, restatable=not (model.policy.disable_restatement or model.kind.is_seed)))
    return tuple(emptied)


def forget_lost_tables(drift: Iterable[Drift], store: StateStore) -> frozenset[str]:
    gone = frozenset(difference.name for difference in drift if difference.kind is DriftKind.TABLE_GONE)
    if gone:
        store.tables.forget(gone)
    return gone


def mend_views(
    environment: Environment, drift: Iterable[Drift], store: StateStore, engine: Engine, lease: Lease
) -> None:
    """Restore the views that are gone, if their tables are there; raise QueryError if Spark refuses one."""
    views, columns = environment.views_by_name, {name: table.columns for name, table in store.tables.all().items()}
    for difference in drift:
        view = views.get(difference.name)
        if view is None or not difference.is_mendable or not columns.get(view.table):
            continue
        store.leases.check(lease)
        engine.catalog.swap_view(_build_view_text(view, columns[view.table]))
        statements = stage_statements(view.statements, EVALUATING, view.name, dates(None, datetime.now(UTC)), {}, {})
        if statements:
            with engine.separate_session(statements, ()):
                pass


def _drift_of(view: View, engine: Engine) -> DriftKind | None:
    standing = engine.catalog.standing(view.name)
    if standing is None:
        return DriftKind.VIEW_GONE
    if not standing.is_view:
        return DriftKind.NO_VIEW
    if quote_name(view.table) in standing.sql:
        return None
    return DriftKind.OTHER_VERSION if re.search(versions_of(view), standing.sql) else DriftKind.VIEW_MOVED


def _build_view_text(view: View, columns: tuple[Column, ...]) -> ViewText:
    comments = dict(view.column_comments)
    listed = ", ".join(f"`{column.name}`" for column in columns)
    commented = [replace(column, comment=comments.get(column.name, "")) for column in columns]
    return ViewText(
        view.name, f"SELECT {listed} FROM {quote_name(view.table)}", view.comment, commented, view.properties
    )
