"""Edits of projects in memory, and what Spark's analyzer says of what a plan for them keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mergeplan.planner.apply.witness.questions import Questions
from mergeplan.planner.apply.witness.stand_ins import Lying, StandIns
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.witness.check import Check
from mergeplan.planner.plan.witness.claims import claims_of
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot

from .building import make_plan, promote

Models = Mapping[str, Model]
Types = Callable[[str], Mapping[str, str]]  # of an external table's columns


@dataclass(frozen=True)
class Witnessed:
    """The plan for an edit, and the check of each of its claims."""

    plan: Plan
    checks: Mapping[str, Check] = field(default_factory=dict)


def declare_columns(model: Model) -> Lying:
    """An external table's columns as they are declared."""
    return tuple(Column(column.name, column.type) for column in model.columns)


def witness(
    engine: SparkEngine, before: Models, after: Models, judge: Callable[[Plan], Plan] = lambda plan: plan
) -> Witnessed:
    """The plan that turns prod with `before` into `after`, and what Spark says of it; `judge` may change verdicts."""
    prod, loaded = promote(before)
    plan = judge(make_plan(after, Environment("dev"), prod, loaded))
    claims = claims_of(plan)
    if not claims:
        return Witnessed(plan)
    built = make_plan(before, Environment("prod"), Environment("prod"))
    tables = _find_columns(engine, built)

    def lying(snapshot: Snapshot) -> Lying | None:
        return declare_columns(snapshot.model) if snapshot.kind.is_external else tables.get(snapshot.table)

    return Witnessed(plan, Questions(StandIns(plan, lying), engine.compare_queries).check_claims(claims))


def _find_columns(engine: SparkEngine, built: Plan) -> dict[str, Lying]:
    """The columns of the tables that a plan builds, by the tables' names."""

    def lying(snapshot: Snapshot) -> Lying | None:
        return declare_columns(snapshot.model) if snapshot.kind.is_external else None

    stand_ins = StandIns(built, lying)
    names = [change.name for change in built.changes if change.kind.has_query]
    Questions(stand_ins, engine.compare_queries).check_claims((), names)
    return {built.new.snapshots[name].table: columns for name, columns in stand_ins.planned.items()}
