"""diff: what an environment shows, against the project's files or another environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from planner.cli.json_lines import JsonLines
from planner.cli.plan import output_option
from planner.cli.plan_json import plan_json
from planner.cli.plan_text import difference_text
from planner.cli.terminal import Terminal
from planner.cli.workspace import Workspace, opened, workspace
from planner.model.model import Kind, Model
from planner.plan.build import Request, build_plan
from planner.plan.schedule import Window
from planner.snapshot.environment import Environment, checked_name

KEYS = ("name", "change", "category", "rule", "reason", "columns", "diff", "path", "line")


@click.command()
@click.argument("environment")
@click.argument("other", required=False)
@output_option
@workspace
def diff(environment: str, other: str | None, root: Path, gateway: str | None, output: str) -> int:
    """Show how the project's files, or the environment OTHER, differ from ENVIRONMENT; exit code 1 when they do.

    \b
    mergeplan diff prod
    mergeplan diff prod dev
    """
    out = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway, hear=out.event, only_looks=True) as work:
        shown = work.environment(checked_name(environment))
        models = _models(work.environment(checked_name(other))) if other else _local(work, shown)
        request = Request(Window(work.now), naming=shown.naming)
        plan = build_plan(models, shown, shown, work.loaded(), request)
    if isinstance(out, JsonLines):
        found = [{key: each[key] for key in KEYS} for each in plan_json(plan, {})["models"]]
        about = {"environment": shown.name, "other": other, "different": bool(found), "models": found}
        out.result(True, None, about)
    else:
        what = f"the `{checked_name(other)}` environment" if other else "the project"
        out.show(difference_text(plan, what))
    return 1 if plan.changes else 0


def _models(environment: Environment) -> Mapping[str, Model]:
    return {name: snapshot.model for name, snapshot in environment.snapshots.items()}


def _local(work: Workspace, shown: Environment) -> Mapping[str, Model]:
    """The project's models, and those tables of others that only Spark's catalog told of: Spark is not asked again."""
    known = {name: each.model for name, each in shown.snapshots.items() if name in work.strangers}
    return {**work.project.models, **{name: model for name, model in known.items() if model.kind is Kind.EXTERNAL}}
