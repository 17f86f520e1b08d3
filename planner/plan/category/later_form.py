"""Edits of one form of a model of two: that of later runs alone changes no row that is there."""

from dataclasses import replace

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.category.categorize import Side, Verdict, row_settings
from mergeplan.planner.plan.category.decision import Candidate
from mergeplan.planner.plan.category.parent_effects import OverParents
from mergeplan.planner.plan.category.verdict import build_middle_side
from mergeplan.planner.plan.change import REBUILT, Category
from mergeplan.planner.plan.forward_only import why_not
from mergeplan.planner.plan.new_table import shape_of
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.two_forms import FORMS, split_forms
from mergeplan.planner.snapshot.meaning import meaning_of

RULE = "later-form"
REASON = (
    "Only its query of later runs changed: existing rows stay. A rebuild would run that of a first run, which"
    " means the same as before."
)


def first_form(model: Model) -> Model | None:
    """Return a model of two forms with the first one alone; None for any other model."""
    forms = split_forms(model.sql, model.name) if model.reads_itself and not model.written.misread else None
    return replace(model, sql=forms[0], written=replace(model.written, text=""), reads_itself=False) if forms else None


def verdict_by_forms(candidate: Candidate, seen_parents: OverParents, by_rule: Verdict) -> Verdict:
    """Return the verdict with the forms that were edited; it keeps all rows if that is the later one alone."""
    old, new = candidate.old.model, candidate.model
    forms = [split_forms(model.sql, model.name) for model in (old, new) if model.reads_itself]
    if by_rule.category not in REBUILT or len(forms) < len((old, new)) or forms[0] == forms[1] or None in forms:
        return by_rule
    if not candidate.inputs.forward.every and _keeps_first_form(candidate, seen_parents):
        return Verdict(Category.FORWARD_ONLY, RULE, REASON, by_rule.columns)
    changed = [
        form for form, before, after in zip(FORMS.values(), *filter(None, forms), strict=True) if before != after
    ]
    return replace(by_rule, reason=f"{by_rule.reason} Its query of {' and that of '.join(changed)} changed.")


def _keeps_first_form(candidate: Candidate, seen_parents: OverParents) -> bool:
    """Return True if the edit alone changed the model, and neither its first form, settings nor types."""
    old, new = candidate.old.model, candidate.model
    first_forms = first_form(old), first_form(new)
    middle = build_middle_side(candidate, seen_parents)
    settings = [(row_settings(model), model.settings) for model in (old, new)]
    if new.kind.is_by_time or why_not(old, new) or settings[0] != settings[1]:
        return False
    if middle.seen != candidate.old.raw or middle.time != candidate.analysis.began:
        return False
    digests = [model and _digest(candidate, seen_parents, model) for model in first_forms]
    return digests[0] is not None and digests[0] == digests[1] and _have_same_types(middle, candidate.analysis.shape)


def _digest(candidate: Candidate, seen_parents: OverParents, model: Model) -> TableDigest | None:
    """Return the meaning of a form over the parents as they are seen; None if it is not known."""
    parents = candidate.parents
    shape = shape_of(model, {name: one.snapshot.as_parent for name, one in parents.items()}, candidate.inputs.shapes)
    rows = {name: one.visible for name, one in parents.items()}
    rows |= {comparison.model: comparison.old.visible_digest for comparison in seen_parents.unchanged}
    known = shape is not None and shape.known
    return meaning_of(model, shape, rows, candidate.analysis.began).table_digest if known else None


def _have_same_types(before: Side, after: Shape | None) -> bool:
    """Return True if all columns of the whole query have the types that they had: each form may widen the other's."""
    old = before.shape
    if old is None or after is None or old.columns != after.columns or old.columns is None:
        return False
    types = (dict(old.types), dict(after.types))
    digests = [shape.own.columns if shape.own else {} for shape in (old, after)]
    return bool(before.model.columns) or all(
        any(name in sides[0] and sides[0].get(name) == sides[1].get(name) for sides in (types, digests))
        for name in old.columns
    )
