"""lint: the project's rules about how models are written; the same look that `plan` takes."""

from __future__ import annotations

from pathlib import Path

import click

from planner.cli.json_lines import JsonLines
from planner.cli.output import output_of, output_option
from planner.cli.terminal import counted
from planner.cli.workspace import opened, workspace
from planner.contract.result import LintCounts, ResultLine
from planner.project.loader import Project
from planner.session.lint import linted
from planner.session.unopened import refusals


@click.command("lint")
@click.argument("names", nargs=-1)
@click.option("-m", "--model", "--models", "models", multiple=True, help="Only this model; the same as NAMES.")
@click.option("--strict", is_flag=True, help="Fail for every model that cannot be opened.")
@output_option
@workspace
def lint_models(
    names: tuple[str, ...], models: tuple[str, ...], strict: bool, output: str, root: Path, gateway: str | None
) -> int:
    """Hold the models, or those of NAMES (also globs, tag:x), to the rules of `linter` in config.yaml.

    \b
    mergeplan lint
    mergeplan lint --model shop.orders
    mergeplan lint --strict
    mergeplan lint --output json
    """
    out = output_of(output)
    with opened(root, gateway) as work:
        project = work.project
        if strict:
            project.refused.check()
        report = linted(project, (*names, *models), refusals(work))
    found, failed = report.violations, [each for each in report.violations if each.blocking]
    out.lint(found)
    if isinstance(out, JsonLines):
        counts = LintCounts(errors=len(failed), warnings=len(found) - len(failed))
        out.result(ResultLine(ok=report.ok, lint=counts))
    elif not found:
        out.say(_nothing(project, report.models))
    else:
        out.say(f"{counted(len(failed), 'error')}, {counted(len(found) - len(failed), 'warning')}.")
    return 0 if report.ok else 1


def _nothing(project: Project, models: int) -> str:
    if not project.config.linter.enabled:
        return "The linter is not enabled: set `linter: {enabled: true, rules: ...}` in config.yaml."
    if not project.rules.every:
        return "The linter has no rules: name them under `linter: rules` in config.yaml."
    return f"{counted(models, 'model')} looked at, nothing found."
