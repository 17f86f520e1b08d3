"""A project without any model of prod is another one, or a checkout that lacks something: nothing of prod goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.planner.model.model import Model
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import external, make_plan, model, project, promote

MODELS = (model("s.a", "SELECT 1 AS id"), model("s.b", "SELECT id FROM s.a"))
OTHERS = [(), (external("r.t", "id"),), (model("ads.a", "SELECT 1 AS id"),)]


@pytest.mark.parametrize("models", OTHERS, ids=["nothing", "an external table", "another project"])
@pytest.mark.parametrize("name", ["prod", "pr_7"])
def test_a_project_without_a_model_of_prod_blocks_the_plan(models: tuple[Model, ...], name: str) -> None:
    prod, loaded = promote(project(*MODELS))
    target = prod if name == "prod" else Environment(name)
    (blocker,) = make_plan(project(*models), target, prod, loaded).blockers

    assert blocker.message.startswith("The project has none of the 2 models of `prod`: all would be removed.")


def test_a_project_with_one_model_left_and_a_first_one_without_any_are_planned() -> None:
    prod, loaded = promote(project(*MODELS))

    renamed = replace(model("t.a", "SELECT 1 AS id"), path=MODELS[0].path)

    assert make_plan(project(MODELS[0]), base=prod, loaded=loaded).blockers == ()
    assert make_plan(project(renamed), base=prod, loaded=loaded).blockers == ()
    assert make_plan({}).blockers == ()
