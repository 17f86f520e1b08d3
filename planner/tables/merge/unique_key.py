"""INCREMENTAL_BY_UNIQUE_KEY: rows of a known key replace the old ones, others are added."""

from collections.abc import Mapping

from sqlglot import exp

from mergeplan.planner.engine.protocol import MergeInto
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.named_columns import MERGE
from mergeplan.planner.parsing.render import fill_values
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.semantics.spark.spark_functions import is_volatile
from mergeplan.planner.tables.merge.relations import (
    PRESENT,
    MergeBatch,
    absent_condition,
    equal_keys,
    key_conditions,
    keys_of_sides,
    merge_text,
    never_condition,
    parse_expression,
    side_column,
    source,
    target,
)


def upsert_query(batch: MergeBatch, when_matched: str, merge_filter: str, values: Mapping[str, exp.Expr]) -> str:
    """Return the SELECT of the table's new content, as a MERGE would leave it.

    The first WHEN whose condition holds decides; a row for which none does stays as it was. `values` are the dates of
    the batch. A query that returns two rows of one key fails.
    """
    if not batch.base:
        first = exp.select(*(exp.column(name, quoted=True) for name in batch.names)).from_("source")
        return merge_text(batch, first.where(exp.column(PRESENT)).with_("source", as_=source(batch)))
    whens = _parse_whens(when_matched, values)
    on = key_conditions(batch)
    if merge_filter:
        on.append(exp.paren(fill_values(parse_expression(merge_filter), values)))
    rows = exp.select(*(_merge_value(name, whens).as_(name, quoted=True) for name in batch.names))
    rows = rows.from_("target").join("source", on=exp.and_(*on), join_type="full outer")
    if any(_is_delete(when) for when in whens):
        rows = rows.where(exp.not_(_delete_expression(whens)))
    return merge_text(batch, rows.with_("target", as_=target(batch)).with_("source", as_=source(batch)))


def upsert_into(
    batch: MergeBatch, when_matched: str, merge_filter: str, values: Mapping[str, exp.Expr]
) -> MergeInto | None:
    """Return the same as a MERGE INTO with the rows of the batch.

    Return None for a key beyond columns and functions of them, and for subqueries and non-deterministic functions.
    """
    expressions = [
        *_parse_whens(when_matched, values),
        *(fill_values(parse_expression(filter_text), values) for filter_text in (merge_filter,) if filter_text),
    ]
    if any(isinstance(node, exp.Query) or is_volatile(node) for tree in expressions for node in tree.walk()):
        return None
    keys = keys_of_sides(batch)
    if keys is None:
        return None
    on = [equal_keys(batch, target_key, source_key) for target_key, source_key in keys]
    if merge_filter:
        on.append(exp.paren(exp.or_(fill_values(parse_expression(merge_filter), values), never_condition(keys[0][1]))))
    rows = exp.select(*(exp.column(name, quoted=True) for name in batch.names)).from_("source")
    rows = rows.where(exp.column(PRESENT)).with_("source", as_=source(batch))
    whens = tuple(_format_when(batch, when) for when in _parse_whens(when_matched, values)) if when_matched else ()
    return MergeInto(merge_text(batch, rows), spark_text(exp.and_(*on)), whens)


def _format_when(batch: MergeBatch, when: exp.When) -> str:
    condition = when.args.get("condition")
    begin = "WHEN MATCHED" + (f" AND ({spark_text(condition)})" if condition is not None else "")
    if _is_delete(when):
        return f"{begin} THEN DELETE"
    assignments = when.args["then"].expressions
    star = next((assignment for assignment in assignments if isinstance(assignment, exp.Star)), None)
    if star is not None:
        names = [name for name in batch.names if name not in _list_exceptions(star)]
        pairs = [(side_column("target", name).this, side_column("source", name)) for name in names]
    else:
        pairs = [(assignment.this.this, assignment.expression) for assignment in assignments]
    return f"{begin} THEN UPDATE SET {', '.join(f'{spark_text(name)} = {spark_text(value)}' for name, value in pairs)}"


def _parse_whens(when_matched: str, values: Mapping[str, exp.Expr]) -> list[exp.When]:
    """Return the WHENs; without any, every column is updated."""
    merge = fill_values(spark_tree(f"{MERGE}{when_matched or 'WHEN MATCHED THEN UPDATE SET *'}").copy(), values)
    return list(merge.args["whens"].expressions)


def _merge_value(name: str, whens: list[exp.When]) -> exp.Expr:
    ifs = [
        exp.If(this=absent_condition("target"), true=side_column("source", name)),
        exp.If(this=absent_condition("source"), true=side_column("target", name)),
        *(exp.If(this=_when_condition(when), true=_update_expression(when, name)) for when in whens),
    ]
    return exp.Case(ifs=ifs, default=side_column("target", name))


def _update_expression(when: exp.When, name: str) -> exp.Expr:
    if _is_delete(when):
        return side_column("target", name)
    for assignment in when.args["then"].expressions:
        if isinstance(assignment, exp.Star):
            return side_column("target" if name in _list_exceptions(assignment) else "source", name)
        if assignment.this.name.lower() == name:
            value: exp.Expr = assignment.expression.copy()
            return value
    return side_column("target", name)


def _list_exceptions(star: exp.Star) -> set[str]:
    """Return the columns that `UPDATE SET * EXCEPT (a, b)` leaves as they are."""
    return {column.name.lower() for column in star.args.get("except_") or ()}


def _delete_expression(whens: list[exp.When]) -> exp.Expr:
    ifs = [
        exp.If(this=exp.or_(absent_condition("target"), absent_condition("source")), true=exp.false()),
        *(exp.If(this=_when_condition(when), true=exp.true() if _is_delete(when) else exp.false()) for when in whens),
    ]
    return exp.Case(ifs=ifs, default=exp.false())


def _when_condition(when: exp.When) -> exp.Expr:
    condition = when.args.get("condition")
    return condition.copy() if condition is not None else exp.true()


def _is_delete(when: exp.When) -> bool:
    return not isinstance(when.args["then"], exp.Update)
