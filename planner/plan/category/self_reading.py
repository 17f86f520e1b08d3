"""Models that read themselves, in a state that has them by their text alone, because earlier versions did so."""

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.category.decision import Decision, Inputs
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.new_table import first_day, shape_of, table_names
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.shape import Reads, Shape
from mergeplan.planner.snapshot.meaning import meaning_of
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot


def follow_old_snapshot(inputs: Inputs, old: Snapshot) -> Snapshot:
    """Return a snapshot of the base with its meaning as this version writes it, if it was known by its text alone.

    Only a text was all that an earlier version knew; without this the table would be recomputed.
    """
    model, base = old.model, inputs.base
    if not model.reads_itself or not model.sql or old.meaning is None or not {*model.depends_on} <= base.keys():
        return old
    shape = shape_of(model, {name: base[name].as_parent for name in model.depends_on}, inputs.shapes)
    began = first_day(inputs.base_graph, model)
    if shape is None or old.meaning is None:
        return old
    by_text = read_old_meanings(model, shape, base, began)
    if (old.meaning.rows, old.meaning.columns) not in [(meaning.rows, meaning.columns) for meaning in by_text]:
        return old
    meaning = meaning_of(model, shape, _read_digests(model, base), began)
    new_meaning = replace(meaning, held_rows=old.meaning.held_rows, held=old.meaning.held, marks=old.meaning.marks)
    return replace(old, meaning=new_meaning, columns=old.columns or table_names(model, shape))


def read_old_meanings(model: Model, shape: Shape, base: Mapping[str, Snapshot], began: str) -> tuple[Meaning, ...]:
    """Return the meanings that earlier versions gave a model, if this version follows it: columns known, or not."""
    if shape.itself is None:
        return ()
    reads = {name: Reads(every=True) for name in model.depends_on}
    texts = Shape(True, shape.text, shape.columns, reads=reads), Shape(False, model.sql, None, reads=reads)
    return tuple(meaning_of(model, text, _read_digests(model, base), began) for text in texts)


def _read_digests(model: Model, base: Mapping[str, Snapshot]) -> dict[str, TableDigest]:
    return {name: base[name].visible_digest for name in model.depends_on}


def keep_old_meaning(decision: Decision, old: Snapshot) -> Decision:
    """Return the decision with the meaning in the state if the table is kept: its readers were judged by that."""
    change = decision.change
    if change is None or change.recomputed or change.category is Category.FORWARD_ONLY:
        return decision
    snapshot = replace(decision.snapshot, meaning=old.meaning, columns=old.columns)
    reported = None if decision.reported is None else old.visible_digest
    return replace(decision, snapshot=snapshot, reported=reported, change=replace(change, old=old, new=snapshot))
