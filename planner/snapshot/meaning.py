"""The meaning of a model's rows: its query over its parents, or its file, and how its table is filled."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import Facet
from mergeplan.planner.naming import ColumnName, partition_text
from mergeplan.planner.semantics.audited_keys import Keys
from mergeplan.planner.semantics.columns import names_with_capitals
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.result_types import PLAIN, may_differ_in
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.types import PADDED, normalize_type
from mergeplan.planner.snapshot.schedule_rows import batch_decides
from mergeplan.planner.snapshot.snapshot import Meaning

_CHAR = re.compile(r"\bchar\((\d+|\?)\)")  # and no `varchar`
MERGING = ("null_safe_key", "delete_insert")  # what they do to rows is in `_merge_settings`
NOTHING_STATED: Mapping[str, str] = {}


def meaning_of(model: Model, shape: Shape | None, parents: Mapping[str, TableDigest], began: str) -> Meaning:
    """Return the meaning of a model over parents with these digests; without columns if those are unknown.

    `began` says from when on a table that is filled by time holds rows. For a table that is computed whole, and whose
    query reads the end of its time, it says how that end is determined.
    """
    if model.kind.is_external:
        # another stamp says that it holds other rows
        stamp = ["stamp", model.stamp] if model.stamp else []
        columns = tuple(
            (column.name, _digest_parts("external column", column.name, column.type, *stamp))
            for column in model.columns
        )
        return Meaning(_digest_parts("external", model.name, *stamp), columns, types=_column_types(model))
    if model.kind.is_seed:
        return _apply_properties(model, _apply_declared_types(model, _seed_meaning(model)))
    assert shape is not None
    table_digest = shape.compute_digest(parents)
    meaning = Meaning(
        table_digest.rows, tuple(table_digest.columns.items()), shape.volatile, shape.volatile_rows, shape.types
    )
    meaning = replace(meaning, keys=_table_keys(model, shape), relies=shape.relies)
    meaning = meaning if model.kind.is_stored else replace(meaning, order=table_digest.order)
    meaning = _keep_spelling(model, meaning, shape.spelled) if model.kind.is_embedded else meaning
    meaning = _apply_declared_types(model, _apply_kind(model, meaning, began, shape), dict(shape.stated))
    return _apply_properties(
        model, _add_history_columns(model, _apply_files(model, _store_char_as_text(model, meaning)))
    )


def _apply_properties(model: Model, meaning: Meaning) -> Meaning:
    texts = [text for key, text in model.encode_properties(Facet.ROWS).items() if key not in MERGING]
    rows = _digest_parts(meaning.rows, "properties", *texts)  # of which no more is known: neither keys nor types
    return replace(meaning, rows=rows, keys=(), types=()) if texts else meaning


def _keep_spelling(model: Model, meaning: Meaning, spelled: str) -> Meaning:
    """Return the meaning with the columns of an embedded query in the case in which they are written.

    The query is part of its readers' text, and `TO_JSON(STRUCT(e.*))` shows the names. A table or a view has its own
    schema in between. `spelled` stands for names that are not known: those of a star over another embedded query.
    """
    names = names_with_capitals(model.sql)
    spellings = ((name, value, names.get(name, spelled)) for name, value in meaning.columns)
    columns = (
        (name, _digest_parts("spelled", value, spelling) if spelling else value) for name, value, spelling in spellings
    )
    return replace(meaning, columns=tuple(columns), is_spelled=bool(spelled))


def _apply_files(model: Model, meaning: Meaning) -> Meaning:
    """Return the meaning of a table in whose format some values, or their types, are other ones."""
    form, types = model.storage.form, dict(meaning.types)
    if not model.kind.is_stored or model.kind.keeps_history or not may_differ_in(form, None):
        return meaning  # a history is copied whatever its format becomes: computed again, it would be lost
    rows = meaning.rows if meaning.columns else _digest_parts("in", form, meaning.rows)
    columns = (
        (name, _digest_parts("in", form, value) if may_differ_in(form, types.get(name)) else value)
        for name, value in meaning.columns
    )
    return replace(meaning, rows=rows, columns=tuple(columns))


def _store_char_as_text(model: Model, meaning: Meaning) -> Meaning:
    """Return the meaning of a table whose CHAR columns are STRING: comparisons of such a column add no spaces."""
    padded = {name for name, type_ in meaning.types if _CHAR.search(type_)}
    if not padded or not model.kind.is_stored or model.columns:
        return meaning
    columns = ((name, _digest_parts("text", value) if name in padded else value) for name, value in meaning.columns)
    types = ((name, _CHAR.sub("string", type_)) for name, type_ in meaning.types if type_ != PADDED)
    return replace(meaning, columns=tuple(columns), types=tuple(types))


def _table_keys(model: Model, shape: Shape) -> Keys:
    """Return the keys of the query that its table has too.

    That needs a table that is written whole. Columns that it is partitioned by are excluded, because Spark makes NULL
    of an empty text there.
    """
    if model.kind.is_incremental or not model.kind.has_query:
        return ()
    texts = [ColumnName.parse(text) or text.replace("``", "`") for text in model.storage.partitioned_by]
    return tuple(key for key in shape.keys if not any(name in text for name in key for text in texts))


def _seed_meaning(model: Model) -> Meaning:
    """Return the meaning of a seed: its number of rows, and by column its cells.

    `Seed.cells` hashes them row by row in an order of its own.
    """
    assert model.seed is not None
    cells = dict(model.seed.cells)
    names = [column.name for column in model.columns] or list(model.seed.header)
    parts = ["stamp", model.stamp] if model.stamp else []
    parts += [encode_text(model.statements.shaping)] if model.statements.shaping else []
    return Meaning(
        _digest_parts("seed", str(model.seed.rows), *parts, *_spark_settings(model)),
        tuple((name, _digest_parts("cells", cells.get(name, model.seed.digest))) for name in names),
    )


def _apply_kind(model: Model, meaning: Meaning, began: str, shape: Shape) -> Meaning:
    """Return the effect of the kind on the query's rows: a table filled by time holds only those of its days."""
    parts = [str(model.schedule.end or ""), model.stamp, *_spark_settings(model)]
    parts += [began] if began and not model.kind.is_incremental else []
    size = model.batches.batch_size
    parts += ["batches of", str(size)] if size and batch_decides(model, shape) else []
    volatile = meaning.volatile_rows
    if model.kind.is_by_time:
        # if the query's columns are not known, the name counts: filled by another column, the table holds other rows
        unknown = "" if meaning.columns else model.by_time.time_column
        time = dict(meaning.columns).get(model.by_time.time_column, unknown)
        parts += ["by time", time, model.by_time.time_format, str(model.cron.unit), began]
        volatile = volatile or model.by_time.time_column in meaning.volatile
    if model.is_order_dependent:
        # The table's rows depend on when its batches ran and in which order: another table holds other rows.
        parts += ["in order", str(model.kind), str(model.cron.unit), began, *_merge_settings(model)]
        parts += ["reads itself", str(size)] if model.reads_itself else []
        volatile = True
    rows = _digest_parts(meaning.rows, *parts) if any(parts) else meaning.rows
    return replace(meaning, rows=rows, volatile_rows=volatile)


def _spark_settings(model: Model) -> tuple[str, ...]:
    """Return the Spark settings that shape rows: with others the same query over the same rows is another table."""
    return ("computed under", *(part for pair in model.settings for part in pair)) if model.settings else ()


def _add_history_columns(model: Model, meaning: Meaning) -> Meaning:
    history_columns = tuple(
        (column.name, _digest_parts("kept", column.name, column.type)) for column in model.history_columns
    )
    types = tuple((column.name, normalize_type(column.type)) for column in model.history_columns)
    if history_columns:
        return replace(meaning, columns=(*meaning.columns, *history_columns), types=(*meaning.types, *types))
    return meaning


def _merge_settings(model: Model) -> tuple[str, ...]:
    partitions = map(partition_text, model.storage.partitioned_by) if model.replaces_partitions else ()
    key = model.by_key
    parts = (*key.unique_key, "matched", key.when_matched, key.merge_filter, encode_text(model.history or ""))
    parts += ("delete and insert",) if key.delete_insert else ("null-safe",) if key.null_safe_key else ()
    return (*parts, "partitions", *partitions, str(model.batches.insert_overwrite))


def _apply_declared_types(model: Model, meaning: Meaning, stated_types: Mapping[str, str] = NOTHING_STATED) -> Meaning:
    """Return the meaning with the declared columns: a table casts to their types, and has their order.

    Declaring the type that the query itself states (`stated_types`) changes nothing. Types that external_models.yaml
    declares are not relied on.
    """
    if not model.columns or not model.kind.is_stored:  # the columns of a query without a table are its own
        return meaning
    types = {column.name: column.type for column in model.columns}
    if not meaning.columns:  # the query's columns are not known, and the table has these, in this order
        declared = _digest_parts(meaning.rows, "declared", *(part for column in types.items() for part in column))
        return replace(meaning, rows=declared, types=_column_types(model), keys=())
    had = {name: type_ for name, type_ in stated_types.items() if type_ in PLAIN}
    news = {name for name, type_ in types.items() if had.get(name) != normalize_type(type_)}
    columns = {
        name: _digest_parts(column_digest, types[name]) if name in news else column_digest
        for name, column_digest in meaning.columns
    }
    keys = tuple(key for key in meaning.keys if not news & {*key})  # a cast may make two values one
    ordered = tuple((name, columns[name]) for name in sort_columns(model, columns))
    return replace(meaning, columns=ordered, types=_column_types(model), keys=keys)


def sort_columns(model: Model, columns: Iterable[str]) -> tuple[str, ...]:
    declared = [column.name for column in model.columns] if model.kind.is_stored else []
    return tuple(sorted(columns, key=lambda name: declared.index(name) if name in declared else len(declared)))


def _column_types(model: Model) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, normalize_type(column.type)) for column in model.columns)


def _digest_parts(*parts: str) -> str:
    return digest(*parts)[:24]
