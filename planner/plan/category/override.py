"""A person's category for a change, in place of the one that a rule gave."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from mergeplan.planner.errors import RequestError
from mergeplan.planner.plan.category.categorize import EVERY, Verdict
from mergeplan.planner.plan.category.decision import Candidate, Inputs
from mergeplan.planner.plan.change import Blocker, Category, Change, ChangeKind, Days, Override
from mergeplan.planner.plan.forward_only import why_not
from mergeplan.planner.snapshot.snapshot import Snapshot

CHOICES = (Category.BREAKING, Category.NON_BREAKING, Category.FORWARD_ONLY)


def overrides_for(changes: Iterable[Change], categories: Mapping[str, Category], who: str = "") -> tuple[Override, ...]:
    """Return a person's categories as overrides; raise RequestError for a wrong category or an indirect change."""
    direct = {change.name: change for change in changes if is_edit(change)}
    overrides = []
    for name, category in categories.items():
        if category not in CHOICES:
            hint = "Choose `breaking`, `non-breaking` or `forward-only`."
            raise RequestError(f"`{category}` cannot be chosen for `{name}`.", hint=hint)
        if name not in direct:
            choices = ", ".join(f"`{n}`" for n in direct) or "none in this plan"
            raise RequestError(
                f"`{name}` is not directly changed here.", hint=f"Models that can be categorized: {choices}."
            )
        change = direct[name]
        assert change.old is not None
        assert change.new is not None
        # refused now, and not where the plan is carried out: its table could not go on with the old rows
        if category is Category.FORWARD_ONLY and (obstacle := why_not(change.old.model, change.new.model)):
            raise RequestError(f"`{name}` cannot be forward-only: {obstacle}.", hint="Choose another category.")
        overrides.append(Override(name, category, change.old.fingerprint.text, change.new.fingerprint.text, who))
    return tuple(overrides)


def is_edit(change: Change) -> bool:
    return change.change is ChangeKind.DIRECT and not change.is_restated


def restatements_for(
    snapshots: Mapping[str, Snapshot], days_by_model: Mapping[str, Days], who: str, at: datetime
) -> tuple[Override, ...]:
    """Return overrides that compute the rows of models again, in new tables, where the base's `snapshots` allow it."""
    return tuple(
        Override(name, Category.BREAKING, snapshots[name].version, "", who, at, days)
        for name, days in days_by_model.items()
        if not _why_not_restated(snapshots.get(name))
    )


def list_unrestated(
    names: Iterable[str], snapshots: Mapping[str, Snapshot], changes: Iterable[Change]
) -> list[Blocker]:
    """Return a warning for each model with rows not restated in a copy; one without rows is computed as a whole."""
    restated = {change.name for change in changes if change.is_restated or change.missing == change.needed != ()}
    warnings = []
    for name in names:
        if name not in restated:
            anyway = "it has a new table here anyway", f"`--restate-model {name}` computes its rows again."
            reason, hint = _why_not_restated(snapshots.get(name)) or anyway
            warnings.append(Blocker(f"`{name}` is not restated in a copy: {reason}. {hint}"))
    return warnings


def _why_not_restated(snapshot: Snapshot | None) -> tuple[str, str] | None:
    """Return why a table cannot be computed again beside the old one, as a clause, and a hint; None if it can."""
    if snapshot is None:
        return "prod does not have it yet", "Restate it in its environment."
    if snapshot.model.policy.disable_restatement:
        return "its `disable_restatement` is true", "Leave it out."
    if snapshot.kind.keeps_history:
        return "its table holds rows that its query no longer returns", "Restate it in prod."
    if snapshot.forced:
        return "its table keeps rows of an earlier change", "Restate it in prod."
    return None


def find_restatement(inputs: Inputs, old: Snapshot) -> Override | None:
    """Return the last request to compute the rows of this very table again."""
    about = (override for override in reversed(inputs.overrides) if override.restates and override.model == old.name)
    return next((override for override in about if override.old == old.version and not old.forced), None)


def build_restated_verdict(override: Override) -> Verdict:
    who, days = f"@{override.who}" if override.who else "Somebody", override.restates
    assert days is not None
    bounds = [f" {word} {at:%Y-%m-%d %H:%M}" for word, at in (("from", days.start), ("up to", days.end)) if at]
    return Verdict(Category.BREAKING, "restated", f"{who} restates its rows{''.join(bounds)}.", EVERY)


def override_of(candidate: Candidate, overrides: tuple[Override, ...]) -> Override | None:
    """Return the last category that a person chose for this very change, from the base's model to the model now.

    After another edit on either side no person has judged the new difference, and the rules decide again.
    """
    about = (candidate.model.name, candidate.old.fingerprint.text, candidate.fresh.fingerprint.text)
    chosen = (o for o in reversed(overrides) if not o.restates and (o.model, o.old, o.new) == about)
    return next(chosen, None) if candidate.edited else None


def end_of(override: Override, changes: Iterable[Change]) -> str:
    """Return what ended an override: another version in the `base`, or an `edit` of the model or a parent."""
    change = next((change for change in changes if change.name == override.model), None)
    if override.restates:
        return "edit" if change and change.change is ChangeKind.DIRECT else "base"
    return "base" if change and change.old and change.old.fingerprint.text != override.old else "edit"


def insists_on_breaking(rule_verdict: Verdict, override: Override) -> bool:
    """Return True if a person says breaking of what the rules found to be less."""
    said = (Category.BREAKING, Category.UNDECIDED)
    return override.category is Category.BREAKING and rule_verdict.category not in said


def apply_override(rule_verdict: Verdict, override: Override) -> Verdict:
    who = f"@{override.who}" if override.who else "Somebody"
    category = str(override.category).replace("_", "-")
    reason = f"{who} categorized it as {category}; the rule `{rule_verdict.rule}` had said: {rule_verdict.reason}"
    # a person's `breaking` names no columns: all of them may have changed, unless the rule said breaking, too
    columns = EVERY if insists_on_breaking(rule_verdict, override) else rule_verdict.columns
    return Verdict(override.category, "categorized", reason, columns)
