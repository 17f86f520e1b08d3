"""A person's category for a change, in place of the one that a rule gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mergeplan.planner.errors import RequestError
from mergeplan.planner.plan.category.categorize import EVERY, Verdict
from mergeplan.planner.plan.category.decision import Candidate
from mergeplan.planner.plan.change import Category, Change, ChangeKind, Override
from mergeplan.planner.plan.forward_only import why_not

CHOICES = (Category.BREAKING, Category.NON_BREAKING, Category.FORWARD_ONLY)


def overrides_for(changes: Iterable[Change], categories: Mapping[str, Category], who: str = "") -> tuple[Override, ...]:
    """Return a person's categories as overrides of these changes.

    Raise RequestError unless each names a directly changed model and is breaking, non-breaking or forward-only.
    """
    direct = {change.name: change for change in changes if change.change is ChangeKind.DIRECT}
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


def override_of(candidate: Candidate, overrides: tuple[Override, ...]) -> Override | None:
    """Return the last category that a person chose for this very change.

    An override is about one edit: from the model in the base to the model now. After another edit on either side no
    person has judged the new difference, and the rules decide again.
    """
    about = (candidate.model.name, candidate.old.fingerprint.text, candidate.fresh.fingerprint.text)
    chosen = (override for override in reversed(overrides) if (override.model, override.old, override.new) == about)
    return next(chosen, None) if candidate.edited else None


def end_of(override: Override, changes: Iterable[Change]) -> str:
    """Return what ended an override: `base` or `edit`.

    `base` says that the base has another version of the model now; `edit` says that the model or a parent was edited.
    """
    change = next((change for change in changes if change.name == override.model), None)
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
