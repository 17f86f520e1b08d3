"""Known meanings: what a model means over its parents, stored in short to see that no edit of them concerns it.

The key covers all that decides the meaning: the model, and its parents. So a plan that knows the meaning over the old
parents, and sees that the query cannot tell the new ones from them, knows the meaning without analysing the query.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.semantics.parent import can_mean, narrow_parents
from mergeplan.planner.semantics.shape import Reads, Shape
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot

Parents = Mapping[str, Snapshot]


@dataclass(frozen=True)
class KnownMeaning:
    """The parts of a query's shape for fingerprints and reasons; `came_out` is a digest of meaning and columns."""

    text: str
    order: str
    came_out: str
    reads: Mapping[str, Reads] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    def is_of(self, snapshot: Snapshot) -> bool:
        return snapshot.meaning is not None and self.came_out == _meaning_digest(snapshot.meaning, snapshot.columns)


def remember_meaning(snapshot: Snapshot, shape: Shape | None, parents: Parents, began: str) -> None:
    """Remember the meaning of a new snapshot, which follows from this shape over these parents.

    Only a meaning that follows from the query alone is remembered, not that of a text which cannot be followed.
    """
    source = shape.source if shape and shape.own and shape.unresolved is None else None
    if shape is None or source is None or snapshot.meaning is None:
        return
    above = {name: parent.as_parent for name, parent in parents.items()}
    if dict(source.parents) != (narrow_parents(source.sql, above) if source.narrowed else above):
        return  # it was analysed over the parents by which it was once judged
    rows = source.digest_key({name: parent.visible_digest for name, parent in parents.items()})
    if source.memory.texts.get(rows) is not None:  # else the query was nested too deeply
        order = "" if snapshot.kind.is_stored else shape.order
        came_out = _meaning_digest(snapshot.meaning, snapshot.columns)
        key = _meaning_key(snapshot.model, began, parents, source.memory)
        if source.memory.recall(KnownMeaning, key) is None:
            source.memory.remember(key, KnownMeaning(shape.text, order, came_out, shape.reads, shape.named))


def recall_meaning(
    model: Model, before: Parents, parents: Parents, began: str, memory: ShapeMemory
) -> KnownMeaning | None:
    """Return the meaning of a model if it is remembered over the parents `before`, and is the same over these."""
    if not model.sql or model.python or before.keys() != parents.keys():
        return None
    meaning = memory.recall(KnownMeaning, _meaning_key(model, began, before, memory))
    changed_names = [name for name in parents if not is_alike(before[name], parents[name])]
    if meaning is None or not changed_names:
        return meaning
    if traits_of(model.sql, memory).unnamed or not all(
        _means_the_same(model.sql, before[name], parents[name]) for name in changed_names
    ):
        return None
    key = _meaning_key(model, began, parents, memory)
    if memory.recall(KnownMeaning, key) is None:
        memory.remember(key, meaning)  # plans over these parents need it once they are promoted
    return meaning


def is_alike(old: Snapshot, new: Snapshot) -> bool:
    """Return True if no query can tell one parent from the other."""
    return old is new or (old.as_parent == new.as_parent and _visible_parts(old) == _visible_parts(new))


def _means_the_same(sql: str, old: Snapshot, new: Snapshot) -> bool:
    """Return True if a query that names all its columns cannot tell them: they differ only in what it does not name."""
    one, two = narrow_parents(sql, {"old": old.as_parent, "new": new.as_parent}).values()
    text = sql.lower()
    return one == two and _visible_parts(old, text) == _visible_parts(new, text)


def _visible_parts(parent: Snapshot, text: str | None = None) -> tuple[object, ...]:
    visible = parent.visible_digest
    columns = [(name, column) for name, column in visible.columns.items() if text is None or can_mean(text, name)]
    return visible.rows, visible.order, columns


def _meaning_key(model: Model, began: str, parents: Parents, memory: ShapeMemory) -> str:
    read = (part for name in sorted(parents) for part in (name, parents[name].seen))
    return memory.key("meaning", repr(model), began, *read)


def _meaning_digest(meaning: Meaning, columns: tuple[str, ...] | None) -> str:
    # the columns of a set in one order: it differs from process to process
    plain = replace(meaning, volatile=frozenset(), marks=())
    return digest(repr(plain), repr(sorted(meaning.volatile)), repr(columns))
