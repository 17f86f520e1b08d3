"""Verdicts that Spark's analyzer refutes: rows are never kept by the rules alone."""

from __future__ import annotations

from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.plan.category.categorize import EVERY, Verdict
from mergeplan.planner.plan.category.decision import Candidate, Decision
from mergeplan.planner.plan.category.parent_effects import OverParents
from mergeplan.planner.plan.change import Category, Columns

RULE = "witness-disagrees"


def claim_of(candidate: Candidate, seen_parents: OverParents) -> str:
    """Return the name of the rules' claim about a model: its old and new text, and the claims about its parents."""
    parents = [f"{name} {_effect_text(parent)}" for name, parent in sorted(candidate.parents.items())]
    unchanged = [f"{comparison.model} {comparison.columns}" for comparison in seen_parents.unchanged]
    old, new = candidate.old, candidate.fresh
    sides = (old.fingerprint.text, old.version, encode_text(old.model.settings), new.fingerprint.text)
    return digest("claim", new.name, *sides, "over", *parents, "same", *unchanged)[:32]


def find_refutation(candidate: Candidate, seen_parents: OverParents) -> str:
    """Return why Spark's analyzer disagrees with the rules about a model; '' if it agrees or did not check."""
    refuted = candidate.inputs.refuted
    return refuted.get(claim_of(candidate, seen_parents), "") if refuted else ""


def build_refuted_verdict(candidate: Candidate, reason: str) -> Verdict:
    category = Category.BREAKING if candidate.edited else Category.INDIRECT_BREAKING
    return Verdict(category, RULE, reason, EVERY)


def _effect_text(parent: Decision) -> str:
    effect: Columns = parent.effect
    columns = (sorted(effect.added), sorted(effect.altered), sorted(effect.removed))
    return f"{parent.snapshot.version} {columns} {effect.every} {effect.order}"
