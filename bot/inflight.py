"""What else is in flight: open pull requests that meet, merges that one takes back, and whom a move of prod concerns.

Pure: plans in, facts out. Two plans meet in a model that both change; they pass each other when no model of one is
changed by the other, nor read by it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mergeplan.planner.contract.plan import ModelChange, PlanView
from mergeplan.planner.site.diff_lines import diff_body

EDITS = frozenset({"direct", "added", "removed"})
MOVES_MOST = 50  # of prod, that plans are compared with
EVERYTHING = "*"


@dataclass(frozen=True)
class Meeting:
    """Another open pull request, the models that both change, and the columns of an edited one that both touch."""

    number: int
    edited: tuple[str, ...] = ()  # both edit them
    computed: tuple[str, ...] = ()  # both compute them, and at most one edits them
    columns: tuple[str, ...] = ()  # `model.column`, where both say which they touch


@dataclass(frozen=True)
class Undoing:
    """A merge whose change of these models a plan takes back; `whole` when nothing of it is left."""

    number: int
    models: tuple[str, ...]
    whole: bool


@dataclass(frozen=True)
class Move:
    """What one revision of prod changed, and what that reads; EVERYTHING where that is not known."""

    revision: int
    models: tuple[str, ...]
    reads: tuple[str, ...] = ()


def find_meeting(number: int, mine: PlanView, other: PlanView) -> Meeting | None:
    """Return where two plans meet; None if they change no model in common."""
    other_models = {model.name: model for model in other.models if _is_edited_or_computed(model)}
    model_pairs = [
        (model, other_models[model.name])
        for model in mine.models
        if _is_edited_or_computed(model) and model.name in other_models
    ]
    if not model_pairs:
        return None
    edited = [(a, b) for a, b in model_pairs if a.change in EDITS and b.change in EDITS]
    computed = tuple(a.name for a, b in model_pairs if (a, b) not in edited)
    columns = tuple(f"{a.name}.{name}" for a, b in edited for name in sorted(_column_changes(a) & _column_changes(b)))
    return Meeting(number, tuple(a.name for a, _ in edited), computed, columns)


def _is_edited_or_computed(model: ModelChange) -> bool:
    return model.change in EDITS or model.recomputed


def _column_changes(model: ModelChange) -> set[str]:
    columns = model.columns
    return set() if columns.every else {*columns.added, *columns.altered, *columns.removed}


def find_undoing(number: int, mine: PlanView, merged_plan: PlanView) -> Undoing | None:
    """Return what a plan takes back of a merge: the same lines reversed, or a model that came and goes."""
    merged_models = {model.name: model for model in merged_plan.models if model.change in EDITS}
    back = tuple(
        model.name
        for model in mine.models
        if model.name in merged_models and _takes_back(model, merged_models[model.name])
    )
    return Undoing(number, back, len(back) == len(merged_models)) if back else None


def _takes_back(mine: ModelChange, theirs: ModelChange) -> bool:
    kinds = {mine.change, theirs.change}
    if kinds == {"added", "removed"}:
        return mine.change == "removed"
    gone, come = _split_diff(mine.diff)
    return mine.change == theirs.change == "direct" and bool(gone or come) and (come, gone) == _split_diff(theirs.diff)


def _split_diff(diff: str) -> tuple[list[str], list[str]]:
    body = diff_body(diff.splitlines())
    return [line[1:] for line in body if line.startswith("-")], [line[1:] for line in body if line.startswith("+")]


def build_move(revision: int, plan: PlanView | None) -> Move:
    if plan is None:
        return Move(revision, (EVERYTHING,))
    names = tuple(model.name for model in plan.models)
    return Move(revision, names, tuple(dict.fromkeys(name for model in plan.models for name in model.parents)))


def is_concerned(plan: PlanView, moves: Sequence[Move], since: int, until: int) -> bool:
    """Return True when prod's moves after a revision concern a plan.

    They changed what it changes or reads, or read what it changes; or one of them is not known.
    """
    moves_by_revision = {entry.revision: entry for entry in moves}
    between = [moves_by_revision.get(revision) for revision in range(since + 1, until + 1)]
    if since > until or None in between:
        return True
    planned_models = {model.name for model in plan.models}
    touched = planned_models | {name for model in plan.models for name in model.parents}
    return any(_has_overlap(entry, planned_models, touched) for entry in between if entry)


def _has_overlap(other: Move, mine: Iterable[str], touched_names: Iterable[str]) -> bool:
    changed, read = set(other.models), set(other.reads)
    return EVERYTHING in changed or bool(changed & set(touched_names)) or bool(read & set(mine))
