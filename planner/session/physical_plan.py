"""What edits do to physical plans: the old and the new query of each model explained over the same tables.

Both read the environment's tables, those of prod only where the environment has none, and the same interval: what
differs is the edit. A view, and an embedded model, stands as its query in those that read it, each as it was on its
side. Nothing is computed, and nothing that goes wrong here ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from planner.apply.physical_tables import physical_table
from planner.checks.data_diff import Budget
from planner.checks.explained import NotUnderstood
from planner.checks.physical_diff import PhysicalDiff, compare
from planner.checks.physical_plan import Known, PhysicalPlan, read_plan
from planner.engine.protocol import Engine
from planner.errors import QueryError
from planner.intervals import Interval, Timeline
from planner.model.model import Model
from planner.parsing.macros.expand import dates
from planner.parsing.render import render, stage_statements
from planner.parsing.sql.macro_scope import EVALUATING
from planner.plan.build import Plan
from planner.session.workspace import Workspace
from planner.snapshot.environment import PROD, checked_name
from planner.snapshot.snapshot import Snapshot

MOST = 30  # models, those of most rows
SECONDS = 30.0  # for all of them together
MOMENT = timedelta(microseconds=1)
Snapshots = Mapping[str, Snapshot]
# Statements before a query that make its plan another one, and compute nothing.
_PREPARES = re.compile(r"\s*(?:SET\s+(?:spark\.|TIME\s)|RESET\s|CREATE\s)", re.IGNORECASE)


def physical_diffs_of_plan(work: Workspace, plan: Plan) -> Iterator[PhysicalDiff]:
    """One model after another whose query a plan, which was applied, makes another one."""
    old = {change.old.name: change.old for change in plan.changes if change.old}
    return physical_diffs(work, {**plan.new.snapshots, **old}, plan.new.snapshots)


def physical_diffs_of_environment(work: Workspace, name: str) -> Iterator[PhysicalDiff]:
    """One model after another that has another query in an environment than in prod; RequestError when either is not
    there."""
    here, prod = work.environment(checked_name(name)), work.environment(PROD)
    return physical_diffs(work, prod.snapshots, here.snapshots)


def physical_diffs(work: Workspace, old: Snapshots, new: Snapshots) -> Iterator[PhysicalDiff]:
    """One model after another whose query runs otherwise with `new` than with `old`, as far as they are explained."""
    sides = _Sides(work, old, new)
    asked = [found for name in sorted(new) if (found := sides.edit(name)) is not None]
    rows = work.store.costs.of([new[each.model].table for each in asked])
    asked.sort(key=lambda each: -rows[table].rows if (table := new[each.model].table) in rows else 0)
    budget = Budget(work.engine, SECONDS, 0, work.cancellation.check) if asked else None
    for number, each in enumerate(asked):
        assert budget is not None
        work.cancellation.check()
        if number >= MOST:
            yield PhysicalDiff(each.model, note=f"not compared: only the {MOST} largest models are")
        else:
            yield _diff(each, work.engine.on(each.gateway), sides.known, budget)


@dataclass(frozen=True)
class _Query:
    """A query as it runs, and the statements that prepare a session for it."""

    sql: str
    before: tuple[str, ...] = ()
    computes: bool = False  # a statement before it does more than that


@dataclass(frozen=True)
class _Edit:
    """A model whose query runs otherwise than before."""

    model: str
    gateway: str
    old: _Query
    new: _Query


@dataclass
class _Sides:
    """What each model reads before and after, over the same tables."""

    work: Workspace
    old: Snapshots
    new: Snapshots

    @cached_property
    def _stored(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Model -> its table, for the old and the new queries."""
        before, after = (
            {name: each.table for name, each in side.items() if not _stands_inside(each)}
            for side in (self.old, self.new)
        )
        return {**before, **after}, after

    @cached_property
    def _inside(self) -> tuple[Mapping[str, Model], Mapping[str, Model]]:
        """The models whose query stands inside those that read them, on both sides."""
        before, after = (
            {name: each.model for name, each in side.items() if _stands_inside(each)} for side in (self.old, self.new)
        )
        return before, after

    @cached_property
    def _loaded(self) -> Mapping[str, Timeline]:
        return self.work.store.intervals.loaded({each.table for side in (self.old, self.new) for each in side.values()})

    @cached_property
    def known(self) -> Mapping[str, Known]:
        """The tables that plans may name, in lower case."""
        columns = {name: table.columns for name, table in self.work.store.tables.all().items()}
        found = {}
        for each in (*self.old.values(), *self.new.values()):
            cut: frozenset[str] = frozenset()
            if each.kind.is_stored and each.table in columns:
                table = physical_table(each, columns[each.table])
                cut = frozenset(part.column for part in table.parts if not part.hidden) | {each.model.time_column}
            found[each.table.lower()] = Known(each.name, cut - {""})
        return found

    def edit(self, name: str) -> _Edit | None:
        """The model's queries before and after; None when it has no two queries, or they are the same text."""
        old, new = self.old.get(name), self.new[name]
        if old is None or not all(each.model.sql and not each.kind.is_embedded for each in (old, new)):
            return None
        if _words(old.model) == _words(new.model) and not self._edited_inside.intersection(new.model.depends_on):
            return None
        interval = self._interval(old, new)
        before, after = (self._query(each, side, interval) for side, each in enumerate((old, new)))
        return None if before == after else _Edit(name, new.model.gateway, before, after)

    @cached_property
    def _edited_inside(self) -> frozenset[str]:
        """The models that stand inside others and run otherwise than before, by their own words or what they read."""
        before, after = self._inside
        found = {n for n in {**before, **after} if _words(before.get(n)) != _words(after.get(n))}
        while more := {n for n, model in after.items() if n not in found and found.intersection(model.depends_on)}:
            found |= more
        return frozenset(found)

    def _query(self, snapshot: Snapshot, side: int, interval: Interval | None) -> _Query:
        model, tables, inside = snapshot.model, self._stored[side], self._inside[side]
        sql = render(model, tables, inside, interval, self.work.now)
        before = [each for each in model.pre_statements if EVALUATING in each.stages]
        prepares = [each for each in before if _PREPARES.match(each.head)]
        if not before:
            return _Query(sql)
        values = dates(interval, self.work.now)
        run = stage_statements(prepares, EVALUATING, self.new[model.name].table, values, tables, inside)
        return _Query(sql, run, computes=any(not each.harmless and each not in prepares for each in before))

    def _interval(self, old: Snapshot, new: Snapshot) -> Interval | None:
        """What both are explained for: the last unit of time that the table holds, or all of it for a whole table."""
        held = self._loaded[new.table] or self._loaded[old.table]
        if not held:
            return None
        whole = Interval(held[0].start, held[-1].end)
        if not new.kind.is_incremental:
            return whole
        start = new.model.cron.cut(held[-1].end - MOMENT)
        return Interval(max(start, held[-1].start), held[-1].end)


def _stands_inside(snapshot: Snapshot) -> bool:
    return not snapshot.kind.is_stored and not snapshot.kind.is_external and bool(snapshot.model.sql)


def _words(model: Model | None) -> tuple[object, ...]:
    return (model.sql, model.text, model.pre_statements) if model else ()


def _diff(asked: _Edit, engine: Engine, known: Mapping[str, Known], budget: Budget) -> PhysicalDiff:
    """How one model's plans differ, or why that is not known."""
    if asked.old.computes or asked.new.computes:
        return PhysicalDiff(asked.model, note="not compared: a statement before its query computes something")
    plans: list[PhysicalPlan] = []
    for which, query in (("old", asked.old), ("new", asked.new)):
        found = _plan(query, which, engine, known, budget)
        if isinstance(found, str):
            return PhysicalDiff(asked.model, note=f"not compared: {found}")
        plans.append(found)
    return PhysicalDiff(asked.model, compare(plans[0], plans[1]))


def _plan(query: _Query, which: str, engine: Engine, known: Mapping[str, Known], budget: Budget) -> PhysicalPlan | str:
    """What is compared of the old or the new query's plan, or why it is not; Cancelled when somebody ends the run."""
    late = f"the {SECONDS:g} seconds for it were over"
    if budget.is_spent:
        return late
    try:
        with budget.held(), engine.beside(query.before, ()):
            return read_plan(engine.explain(query.sql), known)
    except TimeoutError:
        return late
    except QueryError:
        return f"Spark does not explain its {which} query here"
    except NotUnderstood as error:
        return f"the plan of its {which} query is not understood ({error})"
