"""lint: the project's rules about how models are written, checked as `plan` checks them."""

from pathlib import Path

import click

from mergeplan.planner.cli.output import output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.model.model import Model
from mergeplan.planner.project.loader import Project
from mergeplan.planner.session.unopened import lint_refusals
from mergeplan.planner.session.use_cases.lint import LintReport, lint_project
from mergeplan.planner.wording import count_noun, join_names


@click.command("lint")
@click.argument("names", nargs=-1)
@click.option("-m", "--model", "--models", "models", multiple=True, help="Only this model; the same as NAMES.")
@click.option("--strict", is_flag=True, help="Fail for every model that cannot be opened, regardless of config.yaml.")
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
    with open_workspace(root, gateway) as work:
        project = work.project
        if strict:
            project.refused.check()
        report = lint_project(work, (*names, *models), lint_refusals(project))
    violations, failed = report.violations, [violation for violation in report.violations if violation.blocking]
    out.lint(violations)
    if isinstance(out, Terminal):
        out.say(_summary_text(project, report))
        return 0 if report.ok else 1
    from mergeplan.planner.contract.result import LintCounts, ResultLine  # which no person reads

    counts = LintCounts(errors=len(failed), warnings=len(violations) - len(failed))
    out.result(ResultLine(ok=report.ok, lint=counts))
    return 0 if report.ok else 1


def _summary_text(project: Project, report: LintReport) -> str:
    failed = sum(violation.blocking for violation in report.violations)
    totals = f"{count_noun(failed, 'error')}, {count_noun(len(report.violations) - failed, 'warning')}."
    sentences = [_opened_text(project, report), totals if report.violations else "Nothing found."]
    if left_out := len(project.refused.left_out):
        sentences.insert(1, f"{count_noun(left_out, 'model')} left out: each reads one that cannot be opened.")
    if not project.config.linter.enabled:
        sentences.append("No rules: set `linter: {enabled: true, rules: ...}` in config.yaml to check some.")
    elif not project.rules.every:
        sentences.append("The linter has no rules: name them under `linter: rules` in config.yaml.")
    return " ".join(sentences)


def _opened_text(project: Project, report: LintReport) -> str:
    """Return how many models opened; of a whole dbt project also how many seeds, snapshots and tests."""
    if not project.is_dbt or report.models != len(project.models):
        return f"{count_noun(report.models, 'model')} opened."
    kinds = [_node_kind(model) for model in project.models.values()]
    counts = [count_noun(kinds.count(kind), kind) for kind in ("model", "seed", "snapshot") if kind in kinds]
    opened, total = project.dbt_tests[0] + len(project.tests), project.dbt_tests[1]
    counts += [f"{opened} of {count_noun(total, 'test')}"] if opened < total else [count_noun(total, "test")]
    return f"{join_names(counts)} opened."


def _node_kind(model: Model) -> str:
    if model.kind.is_external:
        return "source"
    return "seed" if model.kind.is_seed else "snapshot" if model.history and model.history.dbt else "model"
