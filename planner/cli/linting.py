"""lint: the project's rules about how models are written; the same look that `plan` takes."""

from __future__ import annotations

from pathlib import Path

import click

from planner.checks.linter import lint
from planner.cli.gitchanges import changed_since
from planner.cli.json_lines import JsonLines
from planner.cli.terminal import Terminal, counted
from planner.cli.workspace import opened, workspace
from planner.contract.result import LintCounts, ResultLine
from planner.errors import ProjectErrors
from planner.model.graph import graph_of
from planner.model.selection import select
from planner.project.loader import Project


@click.command("lint")
@click.argument("names", nargs=-1)
@click.option("-m", "--model", "--models", "models", multiple=True, help="Only this model; the same as NAMES.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For a person or a program.")
@workspace
def lint_models(names: tuple[str, ...], models: tuple[str, ...], output: str, root: Path, gateway: str | None) -> int:
    """Hold the models, or those of NAMES (also globs, tag:x), to the rules of `linter` in config.yaml.

    \b
    mergeplan lint
    mergeplan lint --model shop.orders
    mergeplan lint --output json
    """
    out: Terminal | JsonLines = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway) as work:
        project = work.project
        wanted = (*names, *models)
        chosen = select(graph_of(project.models), wanted, changed_since(project)) if wanted else None
        found = lint(project, chosen)
    out.lint(found)
    failed = [each for each in found if each.blocking]
    if isinstance(out, JsonLines):
        counts = LintCounts(errors=len(failed), warnings=len(found) - len(failed))
        out.result(ResultLine(ok=not failed, lint=counts))
    elif not found:
        out.say(_nothing(project, len(project.models) if chosen is None else len(chosen)))
    else:
        out.say(f"{counted(len(failed), 'error')}, {counted(len(found) - len(failed), 'warning')}.")
    return 1 if failed else 0


def check_rules(project: Project, out: Terminal | JsonLines) -> None:
    """What stands before a plan: warnings are told, and a broken rule ends the verb; ProjectErrors."""
    found = lint(project)
    out.lint([each for each in found if not each.blocking])
    if errors := tuple(each.error for each in found if each.blocking):
        raise ProjectErrors(errors)


def _nothing(project: Project, models: int) -> str:
    if not project.config.linter.enabled:
        return "The linter is not enabled: set `linter: {enabled: true, rules: ...}` in config.yaml."
    if not project.rules.every:
        return "The linter has no rules: name them under `linter: rules` in config.yaml."
    return f"{counted(models, 'model')} looked at, nothing found."
