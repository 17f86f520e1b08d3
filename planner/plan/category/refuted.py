"""Verdicts with which Spark's analyzer disagrees: nothing is kept on the word of the rules alone."""

from __future__ import annotations

from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.plan.category.categorize import EVERY, Verdict
from mergeplan.planner.plan.category.decision import Candidate, Decision
from mergeplan.planner.plan.category.parent_effects import OverParents
from mergeplan.planner.plan.change import Category, Columns

RULE = "witness-disagrees"


def claim_of(candidate: Candidate, seen_parents: OverParents) -> str:
    """The name of what the rules say of a model: of its old and its new text, over what they say of its parents."""
    parents = [f"{name} {_effect_text(parent)}" for name, parent in sorted(candidate.parents.items())]
    same = [f"{comparison.model} {comparison.columns}" for comparison in seen_parents.unchanged]
    old, new = candidate.old, candidate.fresh
    sides = (old.fingerprint.text, old.version, encode_text(old.model.settings), new.fingerprint.text)
    return digest("claim", new.name, *sides, "over", *parents, "same", *same)[:32]


def find_refutation(candidate: Candidate, seen_parents: OverParents) -> str:
    """Why Spark's analyzer disagrees with what the rules say of a model; '' where it does not, or was not asked."""
    refuted = candidate.inputs.refuted
    return refuted.get(claim_of(candidate, seen_parents), "") if refuted else ""


def build_refuted_verdict(candidate: Candidate, reason: str) -> Verdict:
    """The verdict on a model about which the rules and Spark disagree."""
    category = Category.BREAKING if candidate.edited else Category.INDIRECT_BREAKING
    return Verdict(category, RULE, reason, EVERY)


def _effect_text(parent: Decision) -> str:
    effect: Columns = parent.effect
    columns = (sorted(effect.added), sorted(effect.altered), sorted(effect.removed))
    return f"{parent.snapshot.version} {columns} {effect.every} {effect.order}"
