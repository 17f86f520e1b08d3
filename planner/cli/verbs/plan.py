"""The `plan` verb: what changed and what it costs; the code that applies it is imported when needed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.checks.data_diff_options import data_diff_options, options_of
from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.handling import Handling
from mergeplan.planner.cli.output import Output, execution_time_option, make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.errors import Refused
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.costs import CostLimit, Estimate
from mergeplan.planner.plan.stages import build_stages
from mergeplan.planner.session.options import PlanOptions, categories
from mergeplan.planner.session.use_cases.plan import check_options, keep_categories, prepare_plan, renew_expiry
from mergeplan.planner.session.use_cases.planning import estimate_costs, save_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import parse_environment_name


class GroupedCommand(click.Command):
    """A command with titles over its options; `groups` gives the parameters of each title, in the order of the help."""

    def __init__(self, *args: Any, groups: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.groups = {title: names.split() for title, names in groups.items()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {str(option.name): option.get_help_record(ctx) for option in self.get_params(ctx)}
        grouped = {name for names in self.groups.values() for name in names}
        others = [name for name in records if name not in grouped]
        for title, names in {**self.groups, "Other options": others}.items():
            lines = [line for name in names if (line := records[name])]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


GROUPS = {
    "Applying": "auto_apply explain no_prompts then_run",
    "Categories": "categories forward_only effective_from enable_preview allow_destructive allow_additive",
    "Which models": "select others_from include_unmodified strict must_open",
    "Which days": "start end restate restate_copy backfill min_intervals no_gaps ignore_cron skip_backfill "
    "empty_backfill",
    "Checks before anything is computed": "skip_tests rerun_tests skip_linter refresh max_bytes max_seconds",
    "Comparisons and diffs": "no_diff diff_rendered detail unmasked seconds rows physical_plan",
}


@click.command(cls=GroupedCommand, groups=GROUPS)
@click.argument("environment", default=None, required=False)
@click.option("--auto-apply", is_flag=True, help="Apply without asking for confirmation.")
@click.option("--explain", is_flag=True, help="Show what applying would do, and do nothing.")
@click.option("-s", "--start", metavar="DATE", help="Compute from this day on only.")
@click.option("-e", "--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option(
    "--categorize",
    "categories",
    multiple=True,
    callback=lambda _context, _option, value: categories(value),
    metavar="MODEL=CATEGORY",
    help="breaking, non-breaking or forward-only for a changed model; reset takes it back.",
)
@click.option("--forward-only", is_flag=True, help="Keep the existing rows of all changed models.")
@click.option("--effective-from", metavar="DATE", help="With --forward-only: recompute from this day on.")
@click.option("--enable-preview/--no-enable-preview", default=None, help="Fill previews of forward-only changes.")
@click.option(
    "--allow-destructive-model",
    "allow_destructive",
    multiple=True,
    metavar="SELECTOR",
    help="Allow forward-only changes of these models to drop columns.",
)
@click.option(
    "--allow-additive-model",
    "allow_additive",
    multiple=True,
    metavar="SELECTOR",
    help="Allow forward-only changes of these models to add columns.",
)
@click.option(
    "-r",
    "--restate-model",
    "restate",
    multiple=True,
    metavar="SELECTOR",
    help="Recompute these models and all models downstream.",
)
@click.option(
    "--restate-copy",
    "restate_copy",
    multiple=True,
    metavar="SELECTOR[=START..END|reset]",
    help="Recompute unchanged models in new tables, which a merge promotes.",
)
@click.option(
    "--select-model", "select", multiple=True, metavar="SELECTOR", help="Plan the changes of these models only."
)
@click.option(
    "--others-from", metavar="ENV", help="With --select-model: take all other models as that environment has them."
)
@click.option(
    "--backfill-model", "backfill", multiple=True, metavar="SELECTOR", help="Backfill only these and what is upstream."
)
@click.option("--min-intervals", type=click.IntRange(min=0), default=0, help="Recompute at least so many intervals.")
@click.option("--no-gaps", is_flag=True, help="Refuse a new table with gaps that the current one does not have.")
@click.option("--empty-backfill", is_flag=True, help="Leave new tables empty, and record their intervals as loaded.")
@click.option("--include-unmodified", is_flag=True, help="Give the environment a view of every model, changed or not.")
@click.option("--diff-rendered", is_flag=True, help="Show the diff of the rendered queries.")
@click.option("--ignore-cron", is_flag=True, help="Compute up to now, regardless of the models' crons.")
@click.option("--run", "then_run", is_flag=True, help="Afterwards run the models that are due.")
@click.option("--skip-backfill", is_flag=True, help="Create tables and views, and leave new tables empty.")
@click.option("--refresh", is_flag=True, help="Ask Spark whether the views and tables are still there.")
@click.option("--skip-tests", is_flag=True, help="Do not run the unit tests first.")
@click.option("--rerun-tests", is_flag=True, help="Also run the unit tests that have not changed since they passed.")
@click.option("--skip-linter", is_flag=True, help="Do not run the linter first.")
@click.option("--strict", is_flag=True, help="Plan nothing if a model cannot be opened.")
@click.option("--must-open", multiple=True, metavar="FILE", help="Fail if a model of this file cannot be opened.")
@click.option("--no-diff", is_flag=True, help="Do not show the diffs of edited models.")
@click.option("--no-prompts", is_flag=True, help="Show the plan without asking; apply it later with `mergeplan apply`.")
@click.option("--who", default="", help="The person who gives these categories, for the history.")
@click.option("--overrides-from", metavar="ENV", help="Also take the categories that were given in ENV, or in ENV,ENV.")
@click.option("--expect-digest", metavar="HASH", help="The reviewed plan's digest: the result says if it is the same.")
@click.option("--note", default="", help="The reason, for the environment's history.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Refuse a plan that would read more than this.")
@click.option(
    "--max-seconds", type=click.FloatRange(min=0), help="Refuse a plan that would take more batch time than this."
)
@data_diff_options("data-diff")
@click.option(
    "--physical-plan/--no-physical-plan",
    default=None,
    help="Compare Spark's physical plans of edited queries after applying. Default: yes, except in prod.",
)
@execution_time_option
@output_option
@workspace
def plan(environment: str | None, root: Path, gateway: str | None, output: str, **option_values: Any) -> int:
    """Show how ENVIRONMENT (prod by default) would change, and apply that if you confirm it.

    \b
    mergeplan plan                     plan prod
    mergeplan plan dev                 plan an environment of your own, from prod
    mergeplan plan dev --auto-apply    without asking for confirmation
    mergeplan plan --explain           show each step, do nothing
    mergeplan plan dev --categorize shop.orders=non-breaking
    mergeplan plan --restate-model shop.orders --start 2026-01-01 --end 2026-01-07
    mergeplan plan dev --forward-only  keep the existing rows
    """
    name = "" if environment is None else parse_environment_name(environment)
    plan_options = options_from(PlanOptions, {**option_values, "environment": name})
    rows = options_of({key: option_values[key] for key in ("detail", "unmasked", "seconds", "rows")})
    limit = CostLimit(option_values["max_bytes"], option_values["max_seconds"])
    handling = options_from(
        Handling, {**option_values, "limit": limit, "data_diff": rows if option_values["detail"] else None}
    )
    out, looks = output_of(output), handling.explain
    with open_workspace(
        root, gateway, "backfill", plan_options.execution_time, on_event=make_emitter(out), only_looks=looks
    ) as work:
        plan_options = check_options(work, plan_options)
        if isinstance(out, Terminal):  # a program gives its own options
            handling = _as_configured(work, handling)
            out.diffs = not handling.no_diff
        planned = _add_drift(work, prepare_plan(work, plan_options), plan_options)
        if handling.explain:
            from mergeplan.planner.session.witness.checking import add_checks

            return _explain_plan(work, out, add_checks(work, plan_options, planned))
        checked = not planned.blockers and (handling.auto_apply or work.has_engine)
        if checked:
            _check_queries(work, planned)
        planned, costs = _show_checked(work, out, planned, plan_options)
        if planned.is_empty or planned.blockers:
            return _nothing_to_apply(work, out, planned, plan_options, handling)
        save_plan(work, planned, plan_options)
        if not plan_options.skip_backfill:
            handling.limit.check(costs.values())
        if not handling.auto_apply and not _confirm_apply(out, planned, handling.no_prompts):
            return 0
        from mergeplan.planner.cli.verbs.apply import carry_out

        if not checked:
            _check_queries(work, planned)
        return carry_out(work, out, planned, plan_options, handling)


def _as_configured(work: Workspace, handling: Handling) -> Handling:
    """Return the handling with config.yaml's settings of plans, unless an option says otherwise."""
    config = work.project.config.plan
    return replace(
        handling,
        no_diff=config.no_diff or handling.no_diff,
        auto_apply=handling.auto_apply or (config.auto_apply and not handling.no_prompts),
    )


def _show_checked(
    work: Workspace, out: Output, unchecked: Plan, options: PlanOptions
) -> tuple[Plan, Mapping[str, Estimate]]:
    """Show the plan when Spark has checked it, and return it with its costs; a program also gets it before that."""
    costs = estimate_costs(work, unchecked)
    if not unchecked.changes:
        out.plan(unchecked, costs)
        return unchecked, costs
    from mergeplan.planner.session.witness.checking import add_checks  # with all that asks Spark

    if isinstance(out, Terminal):
        checked = add_checks(work, options, unchecked)
    else:
        checked = add_checks(work, options, unchecked, lambda plan: out.plan(plan, costs))
    if checked.id != unchecked.id:
        costs = estimate_costs(work, checked)
    out.plan(checked, costs)
    return checked, costs


def _explain_plan(work: Workspace, out: Output, new_plan: Plan) -> int:
    out.plan(new_plan, estimate_costs(work, new_plan))
    if isinstance(out, Terminal):
        from mergeplan.planner.apply.backfill.before_after_all import statements_around

        out.explain(new_plan, build_stages(new_plan, None, *statements_around(work.project, new_plan.new)))
    else:
        out.report_end(ok=not new_plan.blockers)
    return Refused.exit_code if new_plan.blockers else 0


def _nothing_to_apply(work: Workspace, out: Output, new_plan: Plan, options: PlanOptions, handling: Handling) -> int:
    """Handle a plan that is empty or blocked; the categories of an empty one are saved."""
    if not new_plan.blockers and handling.auto_apply:
        keep_categories(work, new_plan, options)
        renew_expiry(work, new_plan)
    if isinstance(out, Terminal) and not (handling.goes_on or work.has_engine):
        return Refused.exit_code if new_plan.blockers else 0
    from mergeplan.planner.cli.verbs.apply import carry_on

    return carry_on(work, out, new_plan, handling)


def _add_drift(work: Workspace, new_plan: Plan, options: PlanOptions) -> Plan:
    """Return the plan with warnings about drift, if Spark is running or must be started for `--refresh`."""
    if not (options.refresh or work.has_engine or work.is_warm):
        return new_plan
    from mergeplan.planner.session.use_cases.drift import add_drift_warnings

    return add_drift_warnings(work, new_plan, describe=options.refresh)


def _check_queries(work: Workspace, new_plan: Plan) -> None:
    from mergeplan.planner.session.use_cases.apply import check_queries

    check_queries(work, new_plan)


def _confirm_apply(out: Output, new_plan: Plan, silent: bool) -> bool:
    if isinstance(out, Terminal) and not silent:
        return out.confirm(new_plan)
    if isinstance(out, Terminal):
        out.say(f"Apply it with: mergeplan apply {new_plan.id}")
    else:
        out.report_end(ok=True)
    return False
