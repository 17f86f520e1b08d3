"""The planner's arguments for a pull request: a list, never a shell line. Pure."""

from collections.abc import Sequence

from mergeplan.bot.budgets import DiffRules, cost_limits, diff_arguments
from mergeplan.bot.projects import inside
from mergeplan.bot.pull_parts import NOT_RESTATED, RESTATED, PendingOverride
from mergeplan.bot.records import PullRecord
from mergeplan.bot.rules import BotConfig
from mergeplan.planner.snapshot.environment import PROD

EDITED_MOST = 1_000  # files that the planner is told by name


def pending_overrides(record: PullRecord) -> tuple[PendingOverride, ...]:
    """Return the overrides for the next plan: those of one person at a time, stored under that name."""
    return tuple(override for override in record.wishes.overrides if override.who == record.wishes.overrides[0].who)


def plan_arguments(
    record: PullRecord, config: BotConfig, diff: DiffRules, edited_files: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the planner's arguments for a pull request; models in the `edited_files` must open."""
    words = pending_overrides(record)
    overrides = [part for word in words for part in _override_arguments(word)]
    by = ["--who", words[0].who] if words else []
    skips = skips_backfill(record, config)
    skip = ["--skip-backfill"] if skips else []
    start = [f"--start={config.default_pr_start}"] if config.default_pr_start else []
    forward = ["--forward-only"] if record.source.forward_only else []
    selected = [f"--select-model={selector}" for selector in record.wishes.select]
    others_option = [f"--others-from={PROD}"] if selected else []
    below = record.stack.planned_on.environment
    inherited = ["--overrides-from", below] if below not in ("", PROD) else []
    rows = () if skips else diff_arguments(diff, "data-diff-")
    physical = "--physical-plan" if config.physical_plan and not skips else "--no-physical-plan"
    return (
        "plan",
        record.environment.name,
        "--auto-apply",
        *overrides,
        *by,
        *skip,
        *start,
        *forward,
        *selected,
        *others_option,
        *inherited,
        *destructive_arguments(record),
        *cost_limits(record, config.cost_budget),
        *rows,
        physical,
        *(f"--must-open={path}" for path in edited_files),
    )


def _override_arguments(override: PendingOverride) -> tuple[str, ...]:
    if override.category == NOT_RESTATED:
        return (f"--restate-copy={override.model}=reset",)
    if override.category != RESTATED:
        return "--categorize", f"{override.model}={override.category}"
    return (f"--restate-copy={override.model}" + (f"={override.days}" if override.days else ""),)


def skips_backfill(record: PullRecord, config: BotConfig) -> bool:
    by_rule = bool(config.skip_pr_backfill) and record.wishes.backfill != "full"
    return by_rule or record.wishes.backfill == "skip"


def destructive_arguments(record: PullRecord) -> tuple[str, ...]:
    return tuple(f"--allow-destructive-model={model}" for model in record.may_be_destructive)


def merge_digest(record: PullRecord) -> str:
    """Return the digest of the plan that a merge carries out; '' without one, or with models left out."""
    plan = record.outcome.plan if record.outcome else None
    return "" if plan is None or plan.not_selected else plan.digest


def merge_arguments(record: PullRecord, *, expect: bool = True) -> tuple[str, ...]:
    has_environment = bool(record.environment.name and record.environment.exists)
    planned = merge_digest(record)
    expected = ("--expect-digest", planned) if planned and has_environment and expect else ()
    forward = ("--forward-only",) if record.source.forward_only else ()
    return (*expected, *forward, *destructive_arguments(record))


def model_files(paths: Sequence[str], root: str) -> tuple[str, ...]:
    """Return the files of models among a repository's paths; `*` when they are too many to name.

    >>> model_files(["etl/models/a.sql", "etl/README.md"], "etl")
    ('models/a.sql',)
    """
    files = inside(paths, root)
    model_paths = tuple(path for path in files if path.startswith("models/") and path.endswith((".sql", ".py")))
    return model_paths if len(model_paths) <= EDITED_MOST else ("*",)
