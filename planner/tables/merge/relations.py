"""The parts of every merge: the rows of the query as `source`, those that the table held as `target`, and keys.

NULL in a key matches nothing in a MERGE, and is a value if the key names a history: `docs/reference/kinds.md`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text

QUERY = "mergeplan_query"  # the model's query, which comes first and unchanged
PRESENT = "mergeplan_in"  # true in each row of a side, so that NULL marks a row of the other side without a match
KEY = "mergeplan_key_"


@dataclass(frozen=True)
class MergeBatch:
    """The rows of one batch and the table that they are merged into.

    `query` is Spark SQL. `base` is a table or view with what the table held before the batch, '' when it held nothing.
    `columns` are those of the query, with the types that the table has.
    """

    model: str
    query: str
    base: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    null_safe: bool = False  # a NULL key is equal to a NULL key

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def source(batch: MergeBatch) -> exp.Select:
    """Return the query's rows in the table's types, each marked and with its keys; two of one key end the query."""
    keys = [exp.column(f"{KEY}{n}") for n in range(len(batch.keys))]
    shown: list[exp.Expr] = [exp.Literal.string(f"The query of {batch.model} returns more than one row for the key (")]
    for n, key in enumerate(keys):
        name = exp.Literal.string(f"{', ' if n else ''}{batch.keys[n]} = ")
        shown += [name, exp.func("coalesce", cast_value(key.copy(), "string"), exp.Literal.string("NULL"))]
    order = "PARTITION BY " + ", ".join(batch.keys)
    hint = f"Keep one of them, for example with QUALIFY ROW_NUMBER() OVER ({order} ORDER BY ...) = 1"
    shown.append(exp.Literal.string(f") in one batch. {hint}."))
    several = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[key.copy() for key in keys]) > 1
    not_null_conditions = () if batch.null_safe else (key.is_(exp.null()).not_() for key in keys)
    error = exp.Anonymous(this="raise_error", expressions=[exp.Anonymous(this="concat", expressions=shown)])
    presence_mark = exp.Case(ifs=[exp.If(this=exp.and_(*not_null_conditions, several), true=error)], default=exp.true())
    return exp.select(exp.Star(), presence_mark.as_(PRESENT)).from_(with_keys(batch).subquery("keyed"))


def with_keys(batch: MergeBatch) -> exp.Select:
    columns = ((column.name, cast_value(exp.column(column.name, quoted=True), column.type)) for column in batch.columns)
    typed = exp.select(*(value.as_(name, quoted=True) for name, value in columns)).from_(QUERY)
    return exp.select(exp.Star(), *_alias_keys(batch)).from_(typed.subquery("typed"))


def target(batch: MergeBatch, extra_columns: Iterable[Column] = ()) -> exp.Select:
    names = (*batch.names, *(column.name for column in extra_columns))
    rows = exp.select(*(exp.column(name, quoted=True) for name in names)).from_(exp.to_table(batch.base))
    return exp.select(exp.Star(), exp.true().as_(PRESENT), *_alias_keys(batch)).from_(rows.subquery("held"))


def side_column(side: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=side)


def absent_condition(side: str) -> exp.Expr:
    return side_column(side, PRESENT).is_(exp.null())


def key_conditions(batch: MergeBatch, side: str = "target") -> list[exp.Expr]:
    """Return the conditions of keys equal to `source`'s; NULL equals nothing, unless the batch is `null_safe`."""
    names = [f"{KEY}{n}" for n in range(len(batch.keys))]
    return [equal_keys(batch, side_column(side, name), side_column("source", name)) for name in names]


def equal_keys(batch: MergeBatch, one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=one, expression=other) if batch.null_safe else one.eq(other)


def keys_of_sides(batch: MergeBatch) -> list[tuple[exp.Expr, exp.Expr]] | None:
    """Return each key over the columns of target and source, for a MERGE; None if one is more than their functions."""
    keys = [(_qualify_key(batch, key, "target"), _qualify_key(batch, key, "source")) for key in batch.keys]
    resolved_keys = [
        (target_key, source_key) for target_key, source_key in keys if target_key is not None and source_key is not None
    ]
    return resolved_keys if len(resolved_keys) == len(keys) else None


def never_condition(source_key: exp.Expr) -> exp.Expr:
    """Return a condition that is always false but that no optimizer recognizes as such.

    A format would take a condition on the target alone as all of the table that it has read. The late commit of a
    killed run, which adds the same rows elsewhere, would then not conflict with the run that did its work.
    """
    return exp.Anonymous(this="crc32", expressions=[cast_value(source_key.copy(), "string")]) < 0


def merge_text(batch: MergeBatch, tree: exp.Select) -> str:
    """Return a merge as Spark SQL with the model's query unchanged, so that Spark reads it as it was written."""
    query = batch.query.rstrip().rstrip(";")
    return f"WITH {QUERY} AS (\n{query}\n)\nSELECT * FROM (\n{spark_text(tree)}\n)"


def parse_expression(sql: str) -> exp.Expr:
    """Return a column or an expression of the MODEL block as a tree of its own."""
    name = ColumnName.parse(sql)
    return spark_tree(sql).copy() if name is None else exp.column(str(name), quoted=True)


def cast_value(value: exp.Expr, type_: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType(this=exp.DType.USERDEFINED, kind=type_))


def greatest_value(*values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="greatest", expressions=[*values])


def _qualify_key(batch: MergeBatch, key: str, side: str) -> exp.Expr | None:
    """Return a key over the columns of one side; None if it names something else."""
    tree = exp.paren(parse_expression(key))
    if tree.find(exp.Query, exp.Lambda):  # their inner names may hide the columns'
        return None
    for column in tree.find_all(exp.Column):
        if column.table or column.name.lower() not in batch.names:
            return None
        column.set("table", exp.to_identifier(side))
    return tree


def _alias_keys(batch: MergeBatch) -> Sequence[exp.Expr]:
    return [parse_expression(key).as_(f"{KEY}{n}") for n, key in enumerate(batch.keys)]
