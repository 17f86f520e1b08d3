"""Edits of projects in memory, and what Spark's analyzer says of what a plan for them keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mergeplan.planner.apply.witness.questions import Ask, Questions
from mergeplan.planner.apply.witness.stand_ins import StandIns, TableColumns
from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.witness.check import Check
from mergeplan.planner.plan.witness.claims import claims_of
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot

from .building import make_plan, promote

Models = Mapping[str, Model]
Outside = Callable[[Model], TableColumns]


@dataclass(frozen=True)
class Witnessed:
    """The plan for an edit, and the check of each of its claims."""

    plan: Plan
    checks: Mapping[str, Check] = field(default_factory=dict)


def declare_columns(model: Model) -> TableColumns:
    """Return an external table's columns as they are declared."""
    return tuple(Column(column.name, column.type) for column in model.columns)


def witness(
    engine: SparkEngine,
    before: Models,
    after: Models,
    judge: Callable[[Plan], Plan] = lambda plan: plan,
    outside: Outside = declare_columns,
) -> Witnessed:
    """Return the plan that turns prod with `before` into `after`, and what Spark says of it.

    `judge` may change verdicts; `outside` has the columns of an external table.
    """
    prod, loaded = promote(before)
    plan = judge(make_plan(after, Environment("dev"), prod, loaded))
    if not claims_of(plan):
        return Witnessed(plan)
    tables = find_columns(engine, make_plan(before, Environment("prod"), Environment("prod")), outside)
    return Witnessed(plan, check_plan(engine, plan, tables, outside))


def check_plan(
    engine: SparkEngine, plan: Plan, tables: Mapping[str, TableColumns], outside: Outside = declare_columns
) -> Mapping[str, Check]:
    """Return what Spark says of each model that a plan keeps; `tables` are the columns of the tables that are there."""

    def find_stored(snapshot: Snapshot) -> TableColumns | None:
        return outside(snapshot.model) if snapshot.kind.is_external else tables.get(snapshot.table)

    return Questions(StandIns(plan, find_stored), _ask(engine)).check_claims(claims_of(plan))


def find_columns(engine: SparkEngine, built: Plan, outside: Outside = declare_columns) -> dict[str, TableColumns]:
    """Return the columns of the tables that a plan builds, by the tables' names."""

    def find_stored(snapshot: Snapshot) -> TableColumns | None:
        return outside(snapshot.model) if snapshot.kind.is_external else None

    stand_ins = StandIns(built, find_stored)
    names = [change.name for change in built.changes if change.kind.has_query]
    Questions(stand_ins, _ask(engine)).check_claims((), names)
    return {built.new.snapshots[name].table: columns for name, columns in stand_ins.planned.items()}


def _ask(engine: SparkEngine) -> Ask:
    def compare(analysis: Analysis) -> Sequence[PairResult]:
        answers = engine.compare_queries(analysis)
        assert answers is not None, "this Spark shows no plans"
        return answers

    return compare
