"""The help of a command with many options."""

from __future__ import annotations

from click.testing import CliRunner

from mergeplan.planner.cli.verbs.plan import GROUPS, plan

TITLES = [f"{title}:" for title in (*GROUPS, "Other options")]


def test_the_options_of_plan_stand_in_groups_each_once() -> None:
    shown = CliRunner().invoke(plan, ["--help"]).output
    titles = [line for line in shown.splitlines() if line in TITLES]
    options = [option for option in plan.params if option.param_type_name == "option"]

    assert titles == TITLES
    assert all(shown.count(f"\n  {option.opts[-1]} ") + shown.count(f", {option.opts[-1]} ") for option in options)
    assert "--help" in shown.partition("Other options:")[2]


def test_a_group_names_options_that_there_are() -> None:
    names = [name for group in GROUPS.values() for name in group.split()]

    assert len(names) == len(set(names))
    assert set(names) <= {option.name for option in plan.params}
