"""What a model's rows mean: its query over what it reads, or its file, and how its table is filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.semantics.algebra import Value
from mergeplan.planner.semantics.audited_keys import Keys
from mergeplan.planner.semantics.columns import Shape, written_names
from mergeplan.planner.semantics.digests import Seen
from mergeplan.planner.semantics.types import PLAIN, spelled, stated_type
from mergeplan.planner.snapshot.snapshot import Meaning

NO_VALUES: Mapping[str, Value] = {}


def meaning_of(model: Model, shape: Shape | None, parents: Mapping[str, Seen], began: str) -> Meaning:
    """The meaning of a model over parents that hold this; without columns when those are not known.

    `began` says since when a table that is filled by time is to hold rows.
    """
    if model.kind.is_external:
        return _external(model)
    if model.kind.is_seed:
        return _typed(model, _seed(model))
    assert shape is not None
    seen = shape.seen(parents)
    meaning = Meaning(seen.rows, tuple(seen.columns.items()), shape.volatile, shape.volatile_rows, shape.types)
    meaning = replace(meaning, keys=_keys(model, shape), relies=shape.relies)
    meaning = meaning if model.kind.is_stored else replace(meaning, order=seen.order)
    meaning = _spelled(model, meaning) if model.kind.is_embedded else meaning
    said = shape.relation.columns if shape.relation else {}
    return _kept(model, _typed(model, _filled(model, meaning, began), said))


def _spelled(model: Model, meaning: Meaning) -> Meaning:
    """The columns of an embedded query with the case in which they are written: it stands in its readers' text, and
    `TO_JSON(STRUCT(e.*))` shows the names. A table or a view has a schema of its own between the two."""
    names = written_names(model.sql)
    columns = (
        (name, _mark("spelled", value, names[name]) if name in names else value) for name, value in meaning.columns
    )
    return replace(meaning, columns=tuple(columns))


def _keys(model: Model, shape: Shape) -> Keys:
    """The keys of the query that its table has too: of a table that is written whole, and not of columns by which it is
    partitioned, where Spark makes NULL of an empty text."""
    if model.kind.is_incremental or not model.kind.has_query:
        return ()
    return tuple(key for key in shape.keys if not any(name in text for name in key for text in model.partitioned_by))


def _external(model: Model) -> Meaning:
    columns = tuple((column.name, _mark("external column", column.name, column.type)) for column in model.columns)
    return Meaning(_mark("external", model.name), columns, types=_declared(model))


def _seed(model: Model) -> Meaning:
    """As many rows, and by column the same cells: `Seed.cells` lists them row by row in an order of its own."""
    assert model.seed is not None
    cells = dict(model.seed.cells)
    names = [column.name for column in model.columns] or list(model.seed.header)
    return Meaning(
        _mark("seed", str(model.seed.rows), *(["stamp", model.stamp] if model.stamp else []), *_computed_under(model)),
        tuple((name, _mark("cells", cells.get(name, model.seed.digest))) for name in names),
    )


def _filled(model: Model, meaning: Meaning, began: str) -> Meaning:
    """What the kind makes of the query's rows: a table filled by time holds those of its days only."""
    said = [str(model.end or ""), model.stamp, *_computed_under(model)]
    volatile = meaning.volatile_rows
    if model.kind.is_by_time:
        time = dict(meaning.columns).get(model.time_column, "")
        said += ["by time", time, model.time_format, str(model.cron.unit), began]
        volatile = volatile or model.time_column in meaning.volatile
    if model.is_order_dependent:
        # What the table holds comes of when its batches ran and in which order: another table holds other rows.
        said += ["in order", str(model.kind), str(model.cron.unit), began, *_merging(model)]
        said += ["reads itself", str(model.batch_size)] if model.reads_itself else []
        volatile = True
    rows = _mark(meaning.rows, *said) if any(said) else meaning.rows
    return replace(meaning, rows=rows, volatile_rows=volatile)


def _computed_under(model: Model) -> tuple[str, ...]:
    """The settings of its Spark that shape rows: under others the same query over the same rows is another table."""
    return ("computed under", *(part for pair in model.settings for part in pair)) if model.settings else ()


def _kept(model: Model, meaning: Meaning) -> Meaning:
    """The meaning with the columns that the kind adds; they say when the table was filled."""
    kept = tuple((column.name, _mark("kept", column.name, column.type)) for column in model.kept_columns)
    types = tuple((column.name, spelled(column.type)) for column in model.kept_columns)
    return replace(meaning, columns=(*meaning.columns, *kept), types=(*meaning.types, *types)) if kept else meaning


def _merging(model: Model) -> tuple[str, ...]:
    """How a batch is brought together with what the table held before."""
    partitions = model.partitioned_by if model.replaces_partitions else ()
    said = (*model.unique_key, "matched", model.when_matched, model.merge_filter, repr(model.history or ""))
    return (*said, "partitions", *partitions, str(model.insert_overwrite))


def _typed(model: Model, meaning: Meaning, said: Mapping[str, Value] = NO_VALUES) -> Meaning:
    """The columns as they are declared: a table casts to that, and has them in that order.

    To declare the type that the query gives a column (of those that it has `said` how they are computed) says nothing
    new; what `external_models.yaml` says of a type is not relied on.
    """
    if not model.columns or model.kind.is_view:
        return meaning
    types = {column.name: column.type for column in model.columns}
    had = {name: stated for name, value in said.items() if (stated := stated_type(value)) in PLAIN}
    news = {name for name, type_ in types.items() if had.get(name) != spelled(type_)}
    columns = {name: _mark(each, types[name]) if name in news else each for name, each in meaning.columns}
    keys = tuple(key for key in meaning.keys if not news & {*key})  # a cast may make two values one
    ordered = tuple((name, columns[name]) for name in in_order(model, columns))
    return replace(meaning, columns=ordered, types=_declared(model), keys=keys)


def in_order(model: Model, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that a query returns, in the order in which the model's table has them."""
    declared = [column.name for column in model.columns] if model.kind.is_stored else []
    return tuple(sorted(columns, key=lambda name: declared.index(name) if name in declared else len(declared)))


def _declared(model: Model) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, spelled(column.type)) for column in model.columns)


def _mark(*parts: str) -> str:
    return digest(*parts)[:24]
