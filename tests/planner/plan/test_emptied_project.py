"""A project that opens without any model beside prod is a checkout that lacks something: nothing of prod goes."""

from __future__ import annotations

import pytest

from mergeplan.planner.model.model import Model
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import external, make_plan, model, project, promote

MODELS = (model("s.a", "SELECT 1 AS id"), model("s.b", "SELECT id FROM s.a"))


@pytest.mark.parametrize("models", [(), (external("r.t", "id"),)], ids=["nothing", "an external table"])
@pytest.mark.parametrize("name", ["prod", "pr_7"])
def test_a_project_without_models_blocks_the_plan(models: tuple[Model, ...], name: str) -> None:
    prod, loaded = promote(project(*MODELS))
    target = prod if name == "prod" else Environment(name)
    (blocker,) = make_plan(project(*models), target, prod, loaded).blockers

    assert blocker.message.startswith("The project has no models: all 2 models of `prod` would be removed.")


def test_a_project_with_one_model_left_and_a_first_one_without_any_are_planned() -> None:
    prod, loaded = promote(project(*MODELS))

    assert make_plan(project(MODELS[0]), base=prod, loaded=loaded).blockers == ()
    assert make_plan({}).blockers == ()
