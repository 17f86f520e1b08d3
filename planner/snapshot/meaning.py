"""What a model's rows mean: its query over what it reads, or its file, and how its table is filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import Facet
from mergeplan.planner.naming import ColumnName, partition_text
from mergeplan.planner.semantics.audited_keys import Keys
from mergeplan.planner.semantics.columns import names_with_capitals
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.result_types import PLAIN
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.types import normalize_type
from mergeplan.planner.snapshot.schedule_rows import batch_decides
from mergeplan.planner.snapshot.snapshot import Meaning

MERGING = ("null_safe_key", "delete_insert")  # what they do to rows is in `_merging`
NOTHING_STATED: Mapping[str, str] = {}


def meaning_of(model: Model, shape: Shape | None, parents: Mapping[str, TableDigest], began: str) -> Meaning:
    """The meaning of a model over parents that hold this; without columns when those are not known.

    `began` says since when a table that is filled by time is to hold rows. For one that is computed whole, and whose
    query reads the end of its time, it says by what that end is found.
    """
    if model.kind.is_external:
        return _external(model)
    if model.kind.is_seed:
        return _apply_properties(model, _apply_declared_types(model, _seed(model)))
    assert shape is not None
    seen = shape.compute_digest(parents)
    meaning = Meaning(seen.rows, tuple(seen.columns.items()), shape.volatile, shape.volatile_rows, shape.types)
    meaning = replace(meaning, keys=_keys(model, shape), relies=shape.relies)
    meaning = meaning if model.kind.is_stored else replace(meaning, order=seen.order)
    meaning = _keep_spelling(model, meaning) if model.kind.is_embedded else meaning
    meaning = _apply_declared_types(model, _apply_kind(model, meaning, began, shape), dict(shape.stated))
    return _apply_properties(model, _add_history_columns(model, meaning))


def _apply_properties(model: Model, meaning: Meaning) -> Meaning:
    """Return a meaning with other rows, of which no more is known, where a property says what rows there are."""
    texts = [text for key, text in model.encode_properties(Facet.ROWS).items() if key not in MERGING]
    rows = _mark(meaning.rows, "properties", *texts)
    return replace(meaning, rows=rows, keys=(), types=()) if texts else meaning


def _keep_spelling(model: Model, meaning: Meaning) -> Meaning:
    """The columns of an embedded query with the case in which they are written: it stands in its readers' text, and
    `TO_JSON(STRUCT(e.*))` shows the names. A table or a view has a schema of its own between the two."""
    names = names_with_capitals(model.sql)
    columns = (
        (name, _mark("spelled", value, names[name]) if name in names else value) for name, value in meaning.columns
    )
    return replace(meaning, columns=tuple(columns))


def _keys(model: Model, shape: Shape) -> Keys:
    """The keys of the query that its table has too: of a table that is written whole, and not of columns by which it is
    partitioned, where Spark makes NULL of an empty text."""
    if model.kind.is_incremental or not model.kind.has_query:
        return ()
    texts = [ColumnName.parse(text) or text.replace("``", "`") for text in model.partitioned_by]
    return tuple(key for key in shape.keys if not any(name in text for name in key for text in texts))


def _external(model: Model) -> Meaning:
    """What is known of a table that somebody else fills; another stamp says that it holds other rows."""
    stamp = ["stamp", model.stamp] if model.stamp else []
    columns = tuple(
        (column.name, _mark("external column", column.name, column.type, *stamp)) for column in model.columns
    )
    return Meaning(_mark("external", model.name, *stamp), columns, types=_column_types(model))


def _seed(model: Model) -> Meaning:
    """As many rows, and by column the same cells: `Seed.cells` lists them row by row in an order of its own."""
    assert model.seed is not None
    cells = dict(model.seed.cells)
    names = [column.name for column in model.columns] or list(model.seed.header)
    return Meaning(
        _mark("seed", str(model.seed.rows), *(["stamp", model.stamp] if model.stamp else []), *_spark_settings(model)),
        tuple((name, _mark("cells", cells.get(name, model.seed.digest))) for name in names),
    )


def _apply_kind(model: Model, meaning: Meaning, began: str, shape: Shape) -> Meaning:
    """What the kind makes of the query's rows: a table filled by time holds those of its days only."""
    said = [str(model.end or ""), model.stamp, *_spark_settings(model)]
    said += [began] if began and not model.kind.is_incremental else []
    said += ["batches of", str(model.batch_size)] if model.batch_size and batch_decides(model, shape) else []
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


def _spark_settings(model: Model) -> tuple[str, ...]:
    """The settings of its Spark that shape rows: under others the same query over the same rows is another table."""
    return ("computed under", *(part for pair in model.settings for part in pair)) if model.settings else ()


def _add_history_columns(model: Model, meaning: Meaning) -> Meaning:
    """The meaning with the columns that the kind adds; they say when the table was filled."""
    kept = tuple((column.name, _mark("kept", column.name, column.type)) for column in model.history_columns)
    types = tuple((column.name, normalize_type(column.type)) for column in model.history_columns)
    return replace(meaning, columns=(*meaning.columns, *kept), types=(*meaning.types, *types)) if kept else meaning


def _merging(model: Model) -> tuple[str, ...]:
    """How a batch is brought together with what the table held before."""
    partitions = map(partition_text, model.partitioned_by) if model.replaces_partitions else ()
    said = (*model.unique_key, "matched", model.when_matched, model.merge_filter, encode_text(model.history or ""))
    said += ("delete and insert",) if model.delete_insert else ("null-safe",) if model.null_safe_key else ()
    return (*said, "partitions", *partitions, str(model.insert_overwrite))


def _apply_declared_types(model: Model, meaning: Meaning, stated_types: Mapping[str, str] = NOTHING_STATED) -> Meaning:
    """The columns as they are declared: a table casts to that, and has them in that order.

    To declare the type that the query itself states (`stated_types`) says nothing new; what external_models.yaml says
    of a type is not relied on.
    """
    if not model.columns or model.kind.is_view:
        return meaning
    types = {column.name: column.type for column in model.columns}
    had = {name: type_ for name, type_ in stated_types.items() if type_ in PLAIN}
    news = {name for name, type_ in types.items() if had.get(name) != normalize_type(type_)}
    columns = {
        name: _mark(column_digest, types[name]) if name in news else column_digest
        for name, column_digest in meaning.columns
    }
    keys = tuple(key for key in meaning.keys if not news & {*key})  # a cast may make two values one
    ordered = tuple((name, columns[name]) for name in sort_columns(model, columns))
    return replace(meaning, columns=ordered, types=_column_types(model), keys=keys)


def sort_columns(model: Model, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that a query returns, in the order in which the model's table has them."""
    declared = [column.name for column in model.columns] if model.kind.is_stored else []
    return tuple(sorted(columns, key=lambda name: declared.index(name) if name in declared else len(declared)))


def _column_types(model: Model) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, normalize_type(column.type)) for column in model.columns)


def _mark(*parts: str) -> str:
    return digest(*parts)[:24]
