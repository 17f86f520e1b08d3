"""Empty tables in place of those that a plan's queries read: as they are now, and as they will be.

A column that the rules say is the same in both is one column of one empty table, which both sides read. A column that
they say changed is one column for each side. So two queries have one plan only if they read nothing that changed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mergeplan.planner.apply.backfill.layout import find_projection, reads_projections
from mergeplan.planner.engine.analysis import NEW, OLD, SCHEMA, Analysis, EmptyTable, QueryPair, TableView
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.schedule import EPOCH
from mergeplan.planner.plan.witness.claims import find_renamed
from mergeplan.planner.semantics.types import normalize_type
from mergeplan.planner.snapshot.snapshot import Snapshot

TableColumns = tuple[Column, ...]  # a table's columns in the order in which Spark sees them
MOMENT = datetime(2026, 1, 15, 13, 37, 11, tzinfo=UTC)  # of every query: no unit of a cron begins there
BATCH = Interval(datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 1, 11, tzinfo=UTC))


class ColumnsUnknown(Exception):
    """The columns of a table that a query reads are not known (yet)."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.model = model


@dataclass
class StandIns:
    """The stand-ins of a plan's tables; `stored_columns` returns the columns of an existing table in Spark's order.

    `planned` gets the columns of new tables as they become known.
    """

    plan: Plan
    stored_columns: Callable[[Snapshot], TableColumns | None]
    planned: dict[str, TableColumns] = field(default_factory=dict)
    tables: dict[str, EmptyTable] = field(default_factory=dict)
    views: dict[str, TableView] = field(default_factory=dict)  # each after those that it reads

    def __post_init__(self) -> None:
        self.changes: Mapping[str, Change] = {change.name: change for change in self.plan.changes}
        old_snapshots = {change.name: change.old for change in self.plan.changes if change.old}
        existing_snapshots = {name: one for name, one in self.plan.new.snapshots.items() if name not in self.changes}
        self.sides: tuple[Mapping[str, Snapshot], ...] = (
            {**existing_snapshots, **old_snapshots},
            self.plan.new.snapshots,
        )
        self._embedded: tuple[Mapping[str, Model], ...] = tuple(
            {name: one.model for name, one in side.items() if one.kind.is_embedded} for side in self.sides
        )

    def query(self, snapshot: Snapshot, side: int, same: Mapping[str, tuple[str, ...]]) -> str:
        """Return the query of a model over the stand-ins of one side; raise ColumnsUnknown.

        `same` maps parents to the columns that hold the same values as before.
        """
        model = snapshot.model
        embedded = self._embedded[side]
        projected = reads_projections(model, embedded)
        names = sorted(_names_read(model, embedded, self.sides[side]))
        tables = {name: self._view_of(name, side, same, projected) for name in names}
        if model.reads_itself:
            columns = self._require_columns(snapshot, planned=False)
            tables[model.name] = self._project_table(
                snapshot.name, columns, {c.name: c for c in columns}, f"{snapshot.name} itself"
            )
        return render_model(model, tables, embedded, _interval_of(model), MOMENT)

    def do_reads_decide(self, old: Snapshot, new: Snapshot, same: Mapping[str, tuple[str, ...]]) -> bool:
        """Return True if an unedited model is the same query unless it reads a column that one side alone has.

        Any name of the query that is found among shared columns is found there without the added columns too. The new
        query alone does not show a column that was removed or moved.
        """
        old_embedded, new_embedded = self._embedded
        if old.model != new.model or old_embedded != new_embedded or new.model.reads_itself:
            return False
        projected = reads_projections(new.model, new_embedded)
        return all(
            self._is_extended(name, same, projected) for name in _names_read(new.model, new_embedded, self.sides[1])
        )

    def _is_extended(self, name: str, same: Mapping[str, tuple[str, ...]], projected: bool) -> bool:
        """Return True if a query sees the old columns of a table in their old order, and maybe others among them."""
        change = self.changes.get(name)
        if change is None:
            return True
        if change.old is None or change.new is None or (name not in same and change.effect.every):
            return False
        old = _select_outputs(change.old, self._require_columns(change.old, planned=False), projected)
        new = _select_outputs(change.new, self._require_columns(change.new, planned=True), projected)
        names = iter([column.name for column in new])
        return all(column.name in names for column in old)

    def analysis(self, pairs: Iterable[QueryPair]) -> Analysis:
        return Analysis(tuple(self.tables.values()), tuple(self.views.values()), tuple(pairs))

    def _view_of(self, name: str, side: int, same: Mapping[str, tuple[str, ...]], projected: bool) -> str:
        """Return the view under which one side reads a model's table, with only the judged columns if `projected`."""
        snapshot, change = self.sides[side][name], self.changes.get(name)
        if change is None or change.old is None or change.new is None:
            planned = change is not None and side == 1
            if snapshot.kind.is_view and snapshot.model.sql and not self._find_columns(snapshot, planned=planned):
                return self._add_view(self.query(snapshot, side, {}))
            columns = self._require_columns(snapshot, planned=planned)
            outputs = _select_outputs(snapshot, columns, projected)
            return self._project_table(
                name, columns, {c.name: c for c in columns}, f"{name} {side if change else ''}", outputs
            )
        sides = self._require_columns(change.old, planned=False), self._require_columns(change.new, planned=True)
        return self._share_table(change, sides, side, same.get(name), _select_outputs(snapshot, sides[side], projected))

    def _share_table(
        self,
        change: Change,
        columns: tuple[TableColumns, TableColumns],
        side: int,
        same: tuple[str, ...] | None,
        outputs: TableColumns,
    ) -> str:
        old, new = columns
        types = {column.name: normalize_type(column.type) for column in new}
        effect_columns = change.effect.altered | change.effect.removed | change.effect.added
        shared = {c.name for c in old if types.get(c.name) == normalize_type(c.type)} - effect_columns
        if same is not None:
            shared = {*same}
        elif change.effect.every:
            names = {c.name: c for c in columns[side]}
            return self._project_table(change.name, columns[side], names, f"{change.name} {side} every", outputs)
        shared_columns = [column for column in old if column.name in shared]
        one_sided = [(c, OLD) for c in old if c.name not in shared] + [(c, NEW) for c in new if c.name not in shared]
        table_columns = (*shared_columns, *(Column(f"{column.name}{end}", column.type) for column, end in one_sided))
        # a column with another name is the old one
        moved = {new: f"{old}{OLD}" for old, new in find_renamed(change).items()} if side and same is None else {}
        ends = {c.name: moved.get(c.name, f"{c.name}{(OLD, NEW)[side]}") for c in (old, new)[side]}
        names = {c.name: c if c.name in shared else Column(ends[c.name], c.type) for c in (old, new)[side]}
        return self._project_table(change.name, table_columns, names, change.name, outputs)

    def _project_table(
        self,
        name: str,
        table_columns: TableColumns,
        named: Mapping[str, Column],
        identity: str,
        outputs: TableColumns | None = None,
    ) -> str:
        table = f"mergeplan_table_{digest(identity, repr([(c.name, c.type) for c in table_columns]))[:20]}"
        self.tables.setdefault(table, EmptyTable(table, table_columns))
        columns = outputs or table_columns
        selected = (f"{quote_column(named[c.name].name)} AS {quote_column(c.name)}" for c in columns)
        is_whole = columns == table_columns and all(named[c.name] == c for c in columns)
        return self._add_view(f"SELECT {', '.join(selected)} FROM {SCHEMA}.{table}", table if is_whole else "")

    def _add_view(self, sql: str, table: str = "") -> str:
        name = f"mergeplan_view_{digest(sql)[:20]}"
        self.views.setdefault(name, TableView(name, sql, table))
        return f"{SCHEMA}.{name}"

    def _require_columns(self, snapshot: Snapshot, *, planned: bool) -> TableColumns:
        columns = self._find_columns(snapshot, planned=planned)
        if not columns:
            raise ColumnsUnknown(snapshot.name)
        return columns

    def _find_columns(self, snapshot: Snapshot, *, planned: bool) -> TableColumns | None:
        return (self.planned.get(snapshot.name) if planned else None) or self.stored_columns(snapshot)


def _select_outputs(snapshot: Snapshot, columns: TableColumns, projected: bool) -> TableColumns:
    """Return the columns under which a query finds a table: the judged ones if it reads a projection, else all."""
    by_name = {column.name: column for column in columns}
    judged = find_projection(snapshot) if projected else None
    return tuple(by_name[name] for name in judged) if judged and by_name.keys() >= {*judged} else columns


def _names_read(model: Model, embedded: Mapping[str, Model], side: Mapping[str, Snapshot]) -> frozenset[str]:
    names: set[str] = set()
    for parent in model.depends_on:
        if parent in embedded:
            names |= _names_read(embedded[parent], embedded, side)
        elif parent in side:
            names.add(parent)
    return frozenset(names)


def _interval_of(model: Model) -> Interval | None:
    """Return the time for which a query is written; for a table written whole, up to the last unit of its own cron."""
    if not model.kind.is_stored:
        return None
    if model.kind.is_incremental:
        return BATCH
    end = model.cron.cut(MOMENT)
    return Interval(EPOCH, min(end, model.schedule.end) if model.schedule.end else end)
