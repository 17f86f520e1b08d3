"""A model with its own new table: what its rows mean, and the version that names the table.

Equal versions must mean equal rows, because a table that was built in one environment serves in another. The version
includes everything that makes a table hold other rows than its query would return over whole parents.
"""

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.category.categorize import digest_edits, fingerprint_of
from mergeplan.planner.plan.category.decision import Analysis, Candidate, Decision, Inputs
from mergeplan.planner.plan.change import Adoption, Override
from mergeplan.planner.semantics.columns import code_shape, model_shape
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.snapshot.known_meaning import remember_meaning
from mergeplan.planner.snapshot.meaning import meaning_of, sort_columns
from mergeplan.planner.snapshot.schedule_rows import as_of, embeds_dates, embeds_otherwise
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot, assign_version, version_of

RESTATED = "restated"


def analyze_query(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> Analysis:
    above = {name: parent.snapshot.as_parent for name, parent in parents.items()}
    shape, old = shape_of(model, above, inputs.shapes), inputs.base.get(model.name)
    began = table_time(inputs.graph, model)
    if old is not None and shape is not None and old.meaning is not None and shape.relies != old.meaning.relies:
        # Its table stays the same when an audit of a parent comes or goes: a model that means the same as
        # before is judged by the keys of that time. Recomputed, it is judged by those of today.
        old_shape = shape_of(model, as_keyed(above, old, model.sql, inputs.shapes), inputs.shapes)
        digests = {name: parent.visible for name, parent in parents.items()}
        shape = (
            old_shape if old_shape and meaning_of(model, old_shape, digests, began).table_digest == old.raw else shape
        )
    if shape is not None and model.kind.is_by_time and embeds_dates(inputs.graph, model):
        # An embedded query filters by the interval of its reader, whose rows of a day may be others in larger batches.
        shape = replace(shape, volatile_rows=True, day=None, bounded={})
    read = {name: parent.snapshot.fingerprint for name, parent in parents.items()}
    text, order = (shape.text, "" if model.kind.is_stored else shape.order) if shape else ("", "")
    return Analysis(shape, began, fingerprint_of(model, text, order, read, began))


def shape_of(model: Model, parents: Mapping[str, Parent], memory: ShapeMemory) -> Shape | None:
    if model.python:
        return code_shape(model.python.digest, [column.name for column in model.columns], parents)
    return model_shape(model, parents, memory) if model.sql else None


def as_keyed(parents: Mapping[str, Parent], old: Snapshot, sql: str, memory: ShapeMemory) -> Mapping[str, Parent]:
    """Return a query's parents with the keys by which its model was judged, as far as these still hold.

    A query that takes no rows by an order is judged by no keys.
    """
    if not traits_of(sql, memory).by_order:
        return parents
    relied = dict(old.meaning.relies) if old.meaning else {}
    return {
        name: replace(
            parent, keys=tuple(key for key in parent.keys if key in relied.get(name, ())), audited=relied.get(name, ())
        )
        for name, parent in parents.items()
    }


def build_new_snapshot(inputs: Inputs, model: Model, analysis: Analysis, parents: Mapping[str, Decision]) -> Snapshot:
    # By what the parents' tables hold, and not by what they report: the version says what a query returns from them.
    digests = {name: parent.snapshot.visible_digest for name, parent in parents.items()}
    meaning = meaning_of(model, analysis.shape, digests, analysis.began)
    fresh = Snapshot(model, analysis.fingerprint, "", table_names(model, analysis.shape), meaning=meaning)
    remember_meaning(fresh, analysis.shape, {n: parent.snapshot for n, parent in parents.items()}, analysis.began)
    old = inputs.base.get(model.name)
    if old is not None and old.marks:
        marks = old.marks[: count_marks(old, model)]
        if meaning.table_digest != old.raw:  # another query's rows are not those that were restated
            marks = tuple(mark for mark in marks if mark[1] != RESTATED)
        meaning = replace(meaning, marks=marks)
        fresh = replace(fresh, meaning=meaning)
    if old is not None and _empty_meaning(meaning) == old.meaning:
        # its table was left empty once, and still holds no more than since then
        fresh = replace(fresh, meaning=old.meaning)
    return name_version(inputs, fresh, parents)


def name_version(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision]) -> Snapshot:
    return assign_version(
        fresh, free_version(inputs, fresh, version_details(inputs, fresh.model, parents)), inputs.naming
    )


def count_marks(old: Snapshot, model: Model) -> int:
    """Return how many marks of a table the model keeps: an edit back to what a mark replaced takes it away."""
    text, replaced = digest_edits(model), [mark[0] for mark in old.marks]
    return replaced.index(text) if text in replaced and text != digest_edits(old.model) else len(replaced)


def assign_own_rows(candidate: Candidate, override: Override) -> Snapshot:
    """Return the snapshot with rows that no other version has, because a person says that they differ.

    The rules may have found the rows to be the old ones: then the version would be the old one, and nothing computed.
    """
    fresh = candidate.fresh
    differing = _mark_rows(candidate, "by word", override.old, override.new)
    is_new = fresh.version != candidate.old.version
    return differing if is_new else name_version(candidate.inputs, differing, candidate.parents)


def _mark_rows(candidate: Candidate, *mark: str) -> Snapshot:
    assert candidate.fresh.meaning is not None
    replaced = digest_edits(candidate.old.model) if candidate.edited else ""
    marks = (*candidate.fresh.marks, (replaced, *mark))
    return replace(candidate.fresh, meaning=replace(candidate.fresh.meaning, marks=marks))


def assign_restated_rows(candidate: Candidate, override: Override) -> Snapshot:
    """Return the snapshot with rows that no other version has, because a person wants them to be computed again."""
    restated = _mark_rows(candidate, RESTATED, override.old, f"{override.at}", encode_text(override.restates))
    return name_version(candidate.inputs, restated, candidate.parents)


def assign_refuted_rows(candidate: Candidate, claim: str) -> Snapshot:
    if candidate.fresh.meaning is None:
        return candidate.fresh
    return name_version(candidate.inputs, _mark_rows(candidate, "refuted", claim), candidate.parents)


def empty_if_requested(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision]) -> Snapshot:
    """Return the snapshot of an empty table if the request wants one and no environment shows the whole table.

    An empty table differs from that of the same query with rows, and must never be taken for it.
    """
    if not inputs.empty or not fresh.kind.is_stored or fresh.meaning is None or fresh.table in inputs.loaded.complete:
        return fresh
    return name_version(inputs, replace(fresh, meaning=_empty_meaning(fresh.meaning)), parents)


def adopt_rows(inputs: Inputs, fresh: Snapshot, adoption: Adoption) -> Snapshot:
    """Return the snapshot with the rows of a table that a person declared to hold them.

    They were not computed: the version is unique and the snapshot `forced`, so no rule takes them for the query's.
    """
    assert fresh.meaning is not None
    named = {"adopted": adoption.table, "at": adoption.at}
    if placement := inputs.naming.placement(fresh.name):
        named["placed"] = placement
    version = version_of(fresh.model, fresh.meaning, named)
    return assign_version(replace(fresh, forced=True), version, inputs.naming)


def free_version(inputs: Inputs, fresh: Snapshot, over: Mapping[str, str]) -> str:
    """Return the version of a model that is rebuilt `over` these; never that of a table that drifted."""
    model, meaning, attempt = fresh.model, fresh.meaning, 0
    assert meaning is not None
    named = dict(over)
    if model.kind.has_view and (placement := inputs.naming.placement(model.name)):
        named["placed"] = placement
    version = version_of(model, meaning, named)
    # An override kept a table of this very version while its parents changed: its rows are not what the version says,
    # so a version beside it is taken.
    while model.kind.is_stored and inputs.naming.table(model.name, version) in inputs.loaded.drifted:
        attempt += 1
        version = version_of(model, meaning, named | {"again": str(attempt)})
    return version


def holds_part(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> bool:
    """Return True if a new table of the model would hold only part of its rows.

    That is so if its parents hold part of theirs. It is also so if the table is filled in order, because the days
    before the requested ones could not be filled in later.
    """
    return (model.is_order_dependent and model.name in inputs.limited) or _reads_part(inputs, parents)


def has_own_start(model: Model) -> bool:
    return bool(model.schedule.start or model.schedule.start_moves or not model.kind.is_incremental)


def _reads_part(inputs: Inputs, parents: Mapping[str, Decision]) -> bool:
    def is_cut_short(name: str, decision: Decision) -> bool:
        if decision.is_forward_only and inputs.forward.since is None:
            return False  # it takes over all existing days
        old = inputs.base.get(name)
        # an existing table holds its days, whatever this request says
        return name in inputs.limited and decision.snapshot.table != (old.table if old else "")

    return any(parent.is_partial or is_cut_short(name, parent) for name, parent in parents.items())


def version_details(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> dict[str, str]:
    """Return what a version includes besides the rows.

    A view includes the tables that it names. A table that a request cuts short includes its start, so that it is never
    taken for the whole one.
    """
    if not model.kind.is_stored:
        return {name: parent.snapshot.version for name, parent in parents.items()}
    return {"from": inputs.since} if holds_part(inputs, model, parents) else {}


def table_time(graph: Graph, model: Model) -> str:
    """Return the time of a model's table, and what it embeds, as far as they decide rows beyond the model's settings.

    See `meaning_of`.
    """
    begin = first_day(graph, model) if model.kind.is_incremental else as_of(graph, model)
    size = model.batches.batch_size if model.kind.is_incremental and embeds_dates(graph, model) else None
    time = f"{begin} batches of {size}" if size else begin
    return " ".join(filter(None, (time, *embeds_otherwise(graph, model))))


def first_day(graph: Graph, model: Model) -> str:
    """Return since when a model's table is filled by time: its own start, or else the earliest of its ancestors."""
    if has_own_start(model):
        # `2 days ago` is another moment each day: its text counts, or every day would bring a change
        return model.schedule.start_text if model.schedule.start_moves else str(model.schedule.start)
    above = [graph.models[name].schedule for name in graph.upstream([model.name])]
    moving = sorted({schedule.start_text for schedule in above if schedule.start_moves})
    fixed = min((schedule.start for schedule in above if schedule.start and not schedule.start_moves), default=None)
    return " ".join([*moving, *([str(fixed)] if fixed else [])])


def _empty_meaning(meaning: Meaning) -> Meaning:
    return replace(meaning, rows=digest(meaning.rows, "left empty")[:24])


def table_names(model: Model, shape: Shape | None) -> tuple[str, ...] | None:
    history_names = tuple(column.name for column in model.history_columns)
    if shape is not None and shape.columns is not None:
        return (*sort_columns(model, shape.columns), *history_names)
    if model.columns:
        return (*(column.name for column in model.columns), *history_names)
    return model.seed.header if model.seed else None
