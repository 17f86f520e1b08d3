"""A model as it would be with a table of its own: what its rows mean, and the version that names the table.

Equal versions must mean equal rows, for a table that was built in one environment serves in another. Whatever makes a
table hold other rows than its query would return over whole parents goes into its version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.category.categorize import fingerprint_of
from mergeplan.planner.plan.category.decision import Analysis, Decision, Inputs
from mergeplan.planner.plan.change import Adoption, Override
from mergeplan.planner.semantics.columns import code_shape, model_shape
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.snapshot.known_meaning import remember_meaning
from mergeplan.planner.snapshot.meaning import meaning_of, sort_columns
from mergeplan.planner.snapshot.schedule_rows import as_of, embeds_dates
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot, assign_version, version_of


def analyze_query(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> Analysis:
    """What a model's query is over its parents as they are decided."""
    above = {name: parent.snapshot.as_parent for name, parent in parents.items()}
    shape, began, old = (
        shape_of(model, above, inputs.shapes),
        table_time(inputs.graph, model),
        inputs.base.get(model.name),
    )
    if old is not None and shape is not None and old.meaning is not None and shape.relies != old.meaning.relies:
        # Its table is not another one because an audit of what it reads came or went: a model that means what it
        # meant is judged by the keys that it was judged by then. Computed anew, it is judged by those of today.
        before = shape_of(model, as_keyed(above, old, model.sql, inputs.shapes), inputs.shapes)
        seen = {name: parent.visible for name, parent in parents.items()}
        shape = before if before and meaning_of(model, before, seen, began).table_digest == old.raw else shape
    read = {name: parent.snapshot.fingerprint for name, parent in parents.items()}
    text, order = (shape.text, "" if model.kind.is_stored else shape.order) if shape else ("", "")
    return Analysis(shape, began, fingerprint_of(model, text, order, read, began))


def shape_of(model: Model, parents: Mapping[str, Parent], memory: ShapeMemory) -> Shape | None:
    """The shape of what returns a model's rows; None for a file, and for what the project does not define."""
    if model.python:
        return code_shape(model.python.digest, [column.name for column in model.columns], parents)
    return model_shape(model, parents, memory) if model.sql else None


def as_keyed(parents: Mapping[str, Parent], old: Snapshot, sql: str, memory: ShapeMemory) -> Mapping[str, Parent]:
    """A query's parents with the keys that its model was judged by: those that hold no longer are passed on to nobody.

    A query that takes no rows by an order is judged by no keys.
    """
    if not traits_of(sql, memory).by_order:
        return parents
    relied = dict(old.meaning.relies) if old.meaning else {}
    return {
        name: replace(
            parent,
            keys=tuple(key for key in parent.keys if key in relied.get(name, ())),
            audited=relied.get(name, ()),
        )
        for name, parent in parents.items()
    }


def build_new_snapshot(inputs: Inputs, model: Model, analysis: Analysis, parents: Mapping[str, Decision]) -> Snapshot:
    """The model at a version of its own, whether or not the plan will come to build that table."""
    # By what the parents' tables hold, and not by what they report: the version says what a query returns from them.
    held = {name: parent.snapshot.visible_digest for name, parent in parents.items()}
    meaning = meaning_of(model, analysis.shape, held, analysis.began)
    fresh = Snapshot(model, analysis.fingerprint, "", table_names(model, analysis.shape), meaning=meaning)
    remember_meaning(fresh, analysis.shape, {n: parent.snapshot for n, parent in parents.items()}, analysis.began)
    old = inputs.base.get(model.name)
    if old is not None and _empty_meaning(meaning) == old.meaning:
        # its table was left empty once, and still holds no more than since then
        fresh = replace(fresh, meaning=old.meaning)
    return name_version(inputs, fresh, parents)


def name_version(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision]) -> Snapshot:
    """The snapshot at a version of its own."""
    return assign_version(
        fresh, free_version(inputs, fresh, version_details(inputs, fresh.model, parents)), inputs.naming
    )


def assign_own_rows(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision], override: Override) -> Snapshot:
    """The snapshot with rows that are nobody else's, because a person says that they are.

    The rules may have found the rows to be the old ones; then the version would be the old one too, and nothing would
    be computed.
    """
    assert fresh.meaning is not None
    rows = digest(fresh.meaning.rows, "by word", override.old, override.new)[:24]
    return name_version(inputs, replace(fresh, meaning=replace(fresh.meaning, rows=rows)), parents)


def assign_refuted_rows(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision], claim: str) -> Snapshot:
    """The snapshot with rows that are nobody else's, because Spark's analyzer disagrees with the rules about them."""
    if fresh.meaning is None:
        return fresh
    rows = digest(fresh.meaning.rows, "refuted", claim)[:24]
    return name_version(inputs, replace(fresh, meaning=replace(fresh.meaning, rows=rows)), parents)


def empty_if_requested(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision]) -> Snapshot:
    """The snapshot of a table that is to be left empty, where that was asked and no environment shows the whole one.

    An empty table is another one than that of the same query with rows: it must never be taken for it.
    """
    if not inputs.empty or not fresh.kind.is_stored or fresh.meaning is None or fresh.table in inputs.loaded.complete:
        return fresh
    return name_version(inputs, replace(fresh, meaning=_empty_meaning(fresh.meaning)), parents)


def adopt_rows(inputs: Inputs, fresh: Snapshot, adoption: Adoption) -> Snapshot:
    """The snapshot with the rows of a table that somebody declared to hold them.

    Nobody computed them, so that the version is nobody else's, and `forced`: no rule takes these rows for those that
    the query returns.
    """
    assert fresh.meaning is not None
    named = {"adopted": adoption.table, "at": adoption.at}
    if placement := inputs.naming.placement(fresh.name):
        named["placed"] = placement
    version = version_of(fresh.model, fresh.meaning, named)
    return assign_version(replace(fresh, forced=True), version, inputs.naming)


def free_version(inputs: Inputs, fresh: Snapshot, over: Mapping[str, str]) -> str:
    """The version of a model that is built anew `over` these; never that of a table that drifted."""
    model, meaning, again = fresh.model, fresh.meaning, 0
    assert meaning is not None
    named = dict(over)
    if model.kind.has_view and (placement := inputs.naming.placement(model.name)):
        named["placed"] = placement
    version = version_of(model, meaning, named)
    # An override kept a table of this very version while its parents changed: its rows are not what the version says,
    # so a version beside it is taken.
    while model.kind.is_stored and inputs.naming.table(model.name, version) in inputs.loaded.drifted:
        again += 1
        version = version_of(model, meaning, named | {"again": str(again)})
    return version


def holds_part(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> bool:
    """True when a new table of the model would hold part of its rows: what it reads does, or it goes in order, so that
    the days before those asked for could not be filled in later."""
    return (model.is_order_dependent and model.name in inputs.limited) or _reads_part(inputs, parents)


def has_own_start(model: Model) -> bool:
    """True when the first day of a model's table does not depend on what it reads."""
    return bool(model.start or model.start_moves or not model.kind.is_incremental)


def _reads_part(inputs: Inputs, parents: Mapping[str, Decision]) -> bool:
    """True when a parent's table is new and will hold part of its rows only."""

    def is_cut_short(name: str, decision: Decision) -> bool:
        if decision.is_forward_only and inputs.forward.since is None:
            return False  # it takes over all the days that there are
        old = inputs.base.get(name)
        # a table that is there already holds its days, whatever this request asks for
        return name in inputs.limited and decision.snapshot.table != (old.table if old else "")

    return any(parent.is_partial or is_cut_short(name, parent) for name, parent in parents.items())


def version_details(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> dict[str, str]:
    """What a version says besides the rows: the tables that a view names, and since when a table is filled that a
    request cuts short, for such a table must never be taken for the whole one."""
    if not model.kind.is_stored:
        return {name: parent.snapshot.version for name, parent in parents.items()}
    return {"from": inputs.since} if holds_part(inputs, model, parents) else {}


def table_time(graph: Graph, model: Model) -> str:
    """The time of a model's table as far as it decides rows beside what the model itself says: see `meaning_of`."""
    if not model.kind.is_incremental:
        return as_of(graph, model)
    begin = first_day(graph, model)
    return f"{begin} batches of {model.batch_size}" if model.batch_size and embeds_dates(graph, model) else begin


def first_day(graph: Graph, model: Model) -> str:
    """Since when the table of a model is filled by time: its own start, else the earliest of what it reads."""
    if has_own_start(model):
        # `2 days ago` is another moment each day: its text counts, or every day would bring a change
        return model.start_text if model.start_moves else str(model.start)
    above = [graph.models[name] for name in graph.upstream([model.name])]
    moving = sorted({ancestor.start_text for ancestor in above if ancestor.start_moves})
    fixed = min((ancestor.start for ancestor in above if ancestor.start and not ancestor.start_moves), default=None)
    return " ".join([*moving, *([str(fixed)] if fixed else [])])


def _empty_meaning(meaning: Meaning) -> Meaning:
    return replace(meaning, rows=digest(meaning.rows, "left empty")[:24])


def table_names(model: Model, shape: Shape | None) -> tuple[str, ...] | None:
    """The names of a table's columns, in order; None where nobody can tell them."""
    kept = tuple(column.name for column in model.history_columns)
    if shape is not None and shape.columns is not None:
        return (*sort_columns(model, shape.columns), *kept)
    if model.columns:
        return (*(column.name for column in model.columns), *kept)
    return model.seed.header if model.seed else None
