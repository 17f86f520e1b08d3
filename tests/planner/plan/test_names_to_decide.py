"""A plan decides only what a change can reach, and says what it would say if it decided every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.category import decide
from tests.planner.building import make_plan, promote
from tests.planner.generating import generate


def plan_noting(models: Mapping[str, Model], before: Mapping[str, Model], names: list[str]) -> Plan:
    prod, loaded = promote(dict(before))
    shared = {
        name: shown.model if (shown := prod.snapshots.get(name)) and shown.model == model else model
        for name, model in models.items()
    }
    decided = decide.decide_model
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "decide_model", lambda inputs, model, parents: (
            names.append(model.name), decided(inputs, model, parents))[1])  # fmt: skip
        return make_plan(shared, prod, prod, loaded)


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_is_that_of_all_decisions(seed: int) -> None:
    case, names = generate(seed), list[str]()
    prod, loaded = promote(dict(case.before))
    copies = {name: replace(model) for name, model in case.after.items()}  # equal, and none the base's own object

    plan = plan_noting(case.after, case.before, names)

    assert plan == make_plan(copies, prod, prod, loaded)
    assert {change.name for change in plan.changes if change.new} <= set(names)


def test_nothing_is_decided_where_nothing_is_edited() -> None:
    case, names = generate(3), list[str]()

    plan = plan_noting(case.before, case.before, names)

    assert (plan.changes, names) == ((), [])
