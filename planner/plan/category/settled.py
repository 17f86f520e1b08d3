"""A model that nobody edited and that means what it meant: settled without its query being read or analysed.

So an edit of a hub costs what the readers of the changed columns cost, and not what all models downstream cost. Either
no query could tell what the model reads from what it read before; or an earlier plan remembered what the model means,
and this query cannot tell. Whatever is unusual about a model is left to the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.fingerprint import Fingerprint
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.category.categorize import UNTOUCHED, digest_parents, fingerprint_of, is_edited
from mergeplan.planner.plan.category.decision import Analysis, Candidate, Decision, Inputs
from mergeplan.planner.plan.new_table import first_day, has_own_start, name_version, shape_of
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.snapshot.known_meaning import is_alike, recall_meaning
from mergeplan.planner.snapshot.snapshot import Snapshot


def settle(inputs: Inputs, model: Model, old: Snapshot, parents: Mapping[str, Decision]) -> Candidate | None:
    """The model over its parents as they are decided, when it is known to mean what its table in the base means."""
    if old.forced or old.is_mixed or old.meaning is None or not all(map(_shows_what_it_holds, parents.values())):
        return None
    if is_edited(old.model, model):
        return None
    began = first_day(inputs.graph, model)
    fingerprint = _fingerprint(inputs, old, began, {name: parent.snapshot for name, parent in parents.items()}, model)
    if fingerprint is None:
        return None
    fresh = name_version(inputs, Snapshot(model, fingerprint, "", old.columns, meaning=old.meaning), parents)
    return Candidate(inputs, old, fresh, Analysis(_shape(inputs, model, parents), began, fingerprint), parents, False)


def _shows_what_it_holds(parent: Decision) -> bool:
    return parent.reported is None or parent.reported == parent.snapshot.visible_digest


def _fingerprint(
    inputs: Inputs, old: Snapshot, began: str, parents: Mapping[str, Snapshot], model: Model
) -> Fingerprint | None:
    """The fingerprint of a model that means what it meant; None where that is not known."""
    base = inputs.base
    read = {name: parent.fingerprint for name, parent in parents.items()}
    is_begun_alike = has_own_start(model) or model.name not in inputs.below_moved_starts
    if {name for name in old.model.depends_on if name in base} != parents.keys():
        return None
    if is_begun_alike and all(is_alike(base[name], parent) for name, parent in parents.items()):
        return replace(old.fingerprint, parents=digest_parents(read))
    known = recall_meaning(model, {name: base[name] for name in parents}, parents, began, inputs.shapes)
    return fingerprint_of(model, known.text, known.order, read, began) if known and known.is_of(old) else None


def _shape(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> Shape | None:
    """The shape of its query, where the reason names what it reads of a parent that changed."""
    if all(parent.effect == UNTOUCHED for parent in parents.values()):
        return None
    return shape_of(model, {name: parent.snapshot.as_parent for name, parent in parents.items()}, inputs.shapes)
