"""Qualify the names of a query, with the columns of each star in Spark's order."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from mergeplan.planner.semantics.expressions import USING
from mergeplan.planner.semantics.query.row_order import LISTED, STARRED

MISREAD = "misread"  # marks a query with a star whose order is not known
_NATURAL = "natural"


def qualify_query(tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> exp.Expr:
    """Return a copy of a normalized query with the table of each name; raise SqlglotError for an unknown one."""
    nested: dict[str, dict[str, dict[str, str]]] = {}
    for name, columns in schemas.items():
        schema, table = name.rsplit(".", 1)
        nested.setdefault(schema, {})[table] = dict.fromkeys(columns or (), "string")
    qualified = qualify(tree.copy(), dialect="spark", schema=dict(nested), identify=True)
    selects = (select for select in qualified.find_all(exp.Select) if {USING, STARRED} <= select.meta.keys())
    if not all(map(_has_order_of_spark, selects)):
        qualified.meta[MISREAD] = True
    return qualified


def put_using_first(select: exp.Select) -> None:
    """Put the columns of USING first in `a.*`, as Spark does, and in `*` over a SEMI JOIN.

    Other joins may leave it open which tables have these columns: `_has_order_of_spark` looks at the result.
    """
    joins = select.args.get("joins") or []
    names = [tuple(name.name for name in join.args.get("using") or ()) for join in joins]
    natural = [(_NATURAL,)] if any((join.method or "").upper() == "NATURAL" for join in joins) else []
    lists = [*dict.fromkeys([*filter(None, names), *natural])]
    if not lists:
        return
    select.meta[USING] = tuple(tuple(map(str.lower, using)) for using in lists)
    if len(lists) == 1 and all(names) and not natural:
        is_semi = all((join.kind or "").upper() in ("SEMI", "ANTI") for join in joins)
        parts = (_split_star(output, lists[0], is_semi) for output in select.expressions)
        select.set("expressions", [part for outputs in parts for part in outputs])


def _split_star(output: exp.Expr, names: Sequence[str], is_semi: bool) -> list[exp.Expr]:
    # `a.*` becomes `a.id, a.* EXCEPT (id)`
    star = output.this if isinstance(output, exp.Column) else output
    if not isinstance(star, exp.Star) or star.args.get("replace") or (star is output and not is_semi):
        return [output]
    table = output.args.get("table") if isinstance(output, exp.Column) else None
    excepted = list(star.args.get("except_") or ())
    first = [name for name in names if name.lower() not in {column.name.lower() for column in excepted}]
    star.set("except_", [*excepted, *map(exp.to_identifier, first)])
    return [*(exp.column(name, table=table and table.copy()) for name in first), output]


def _has_order_of_spark(select: exp.Select) -> bool:
    # The columns that a star returned of each table begin with those of USING.
    lists, stars = select.meta[USING], select.meta[STARRED][1:]
    if (_NATURAL,) in lists and any(not star.startswith("*") for star in stars):
        return False
    values = [(output.alias_or_name, output.unalias()) for output in select.expressions]
    columns = [(name, value) for name, value in values if isinstance(value, exp.Column) and LISTED not in value.meta]
    for _, group in groupby(columns, key=lambda column: column[1].table):
        names = [name for name, _ in group]
        used = [[name for name in using if name in names] for using in lists]
        leading = [using for using in used if using]
        if len(leading) > 1 or any(using != names[: len(using)] for using in leading):
            return False
    return True
