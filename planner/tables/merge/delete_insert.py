"""INCREMENTAL_BY_UNIQUE_KEY with `delete_insert`: the rows of a batch replace all rows of their keys."""

from sqlglot import exp

from mergeplan.planner.engine.protocol import MergeInto
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.tables.merge.relations import (
    KEY,
    MergeBatch,
    keys_of_sides,
    merge_text,
    side_column,
    target,
    with_keys,
)

ADDED, REPLACED, NUMBER = "mergeplan_added", "mergeplan_replaced", "mergeplan_number"
MARK, GOES, COMES = (
    "mergeplan_does",
    "1 goes",
    "2 comes",
)  # the effect of a row of a MERGE: its key's rows go, or it comes


def delete_insert(batch: MergeBatch) -> str:
    """Return the SELECT of a batch's rows and other keys' rows; it reads the query once: another read may differ."""
    names = [exp.column(name, quoted=True) for name in batch.names]
    if not batch.base:
        return merge_text(batch, exp.select(*names).from_(with_keys(batch).subquery("source")))
    keys = [exp.column(f"{KEY}{n}") for n in range(len(batch.keys))]
    old_rows = exp.select(*names, *keys, exp.false().as_(ADDED)).from_(target(batch).subquery("target"))
    new_rows = exp.select(*names, *_present_keys(batch), exp.true().as_(ADDED)).from_(
        with_keys(batch).subquery("source")
    )
    replaced = exp.Window(this=exp.Max(this=exp.column(ADDED)), partition_by=[key.copy() for key in keys])
    all_rows = exp.union(old_rows, new_rows, distinct=False).subquery("rows_of_both")
    marked = exp.select(*(name.copy() for name in names), exp.column(ADDED), replaced.as_(REPLACED)).from_(all_rows)
    stays = exp.or_(exp.column(ADDED), exp.not_(exp.column(REPLACED)))
    return merge_text(batch, exp.select(*(name.copy() for name in names)).from_(marked.subquery("marked")).where(stays))


def delete_insert_into(batch: MergeBatch) -> MergeInto | None:
    """Return the same as a MERGE INTO: a row for each key of the batch, whose rows go, and each row that comes.

    Return None if a key is more than columns of the model and functions of them.
    """
    sides = keys_of_sides(batch)
    if sides is None:
        return None
    keys = [exp.column(f"{KEY}{n}") for n in range(len(batch.keys))]
    names = [exp.column(name, quoted=True) for name in batch.names]
    present = exp.select(*names, *_present_keys(batch)).from_(with_keys(batch).subquery("source"))
    order = exp.Order(expressions=[key.copy() for key in keys])
    number = exp.Window(this=exp.RowNumber(), partition_by=[key.copy() for key in keys], order=order)
    numbered = exp.select(*(name.copy() for name in names), number.as_(NUMBER)).from_(present.subquery("present"))
    first = exp.column(NUMBER).eq(1)
    marks = exp.If(this=first, true=_build_array(GOES, COMES), false=_build_array(COMES))
    opened = exp.Anonymous(this="explode", expressions=[marks]).as_(MARK)
    rows = exp.select(*(name.copy() for name in names), opened).from_(numbered.subquery("numbered"))
    goes = side_column("source", MARK).eq(exp.Literal.string(GOES))
    on = exp.and_(goes, *(target_key.eq(source_key) for target_key, source_key in sides))
    added = side_column("source", MARK).eq(exp.Literal.string(COMES))
    return MergeInto(
        merge_text(batch, rows), spark_text(on), ("WHEN MATCHED THEN DELETE",), added=spark_text(added), mark=MARK
    )


def _build_array(*words: str) -> exp.Expr:
    return exp.Anonymous(this="array", expressions=[exp.Literal.string(word) for word in words])


def _present_keys(batch: MergeBatch) -> list[exp.Expr]:
    """Return the keys of a new row; NULL, which is equal to nothing, ends the query with an error."""
    message = f"The query of {batch.model} returns a row whose key (%s) is NULL, which replaces no rows. "
    message += "Leave it out with WHERE, or return another value with COALESCE."
    shown = []
    for number, key in enumerate(batch.keys):
        column = exp.column(f"{KEY}{number}")
        error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(message % key)])
        ifs = [exp.If(this=column.is_(exp.null()), true=error)]
        shown.append(exp.Case(ifs=ifs, default=column.copy()).as_(f"{KEY}{number}"))
    return shown
