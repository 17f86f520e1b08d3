"""Texts about a restatement: what it leaves out and which environments it affects."""

from collections.abc import Iterator

from rich.text import Text

from mergeplan.planner.apply.events import EnvironmentTouched
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.restatement import Touched
from mergeplan.planner.wording import join_names


def restatement_lines(plan: Plan) -> Iterator[Text]:
    if plan.restatement is None:
        return
    for exclusion in plan.restatement.left_out:
        name = plan.new.naming.view(exclusion.model, plan.environment)
        yield Text(f"Not restated: {name}, because {exclusion.reason}.", style="yellow")
    for touched in plan.restatement.touched:
        yield Text(restatement_effect_text(touched), style="yellow")


def restatement_effect_text(effect: Touched | EnvironmentTouched) -> str:
    effects = []
    if effect.shared:
        effects.append(f"shows the same table of {join_names(effect.shared)}")
    if effect.outdated:
        effects.append(f"must compute this time of {join_names(effect.outdated)} again, at its next plan or run")
    return f"`{effect.environment}` {' and '.join(effects)}."
