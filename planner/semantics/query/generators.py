"""Generators (explode, stack, json_tuple, ...): the number of rows that they make of one, and their columns."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mergeplan.planner.semantics.expressions import Reader
from mergeplan.planner.semantics.query.aggregation import Grouping, as_value
from mergeplan.planner.semantics.query.algebra import Block, LateralJoin, Opaque, Part, Ref, Term, Value
from mergeplan.planner.semantics.query.scope import Scope
from mergeplan.planner.semantics.query.sources import Generated
from mergeplan.planner.semantics.spark.spark_functions import is_volatile, multiplies_rows

_EXPLODING = {  # name -> the operation, and whether it has a column with positions
    "Explode": ("explode", False),
    "Posexplode": ("explode", True),
    "ExplodeOuter": ("explode outer", False),
    "PosexplodeOuter": ("explode outer", True),
}


def read_generator(
    reader: Reader, output: exp.Expr, scope: Scope, block: Block, lift: Grouping | None
) -> tuple[Block, dict[str, Value]]:
    names = [output.alias_or_name.lower()]
    if isinstance(output, exp.Aliases):
        names = [alias.name.lower() for alias in output.expressions]
    call, columns = call_of(reader, output.this, scope, names)
    if lift:
        call = as_value(lift.lift_value(call)) if call else None
        columns = [lift.lift_value(column) for column in columns]
    return apply_generator(block, call, columns, names, outer=False)


def call_of(reader: Reader, node: exp.Expr, scope: Scope, names: Sequence[str]) -> tuple[Value | None, list[Part]]:
    """Return the value that decides how many rows a generator makes (None: one), and its columns."""
    if not multiplies_rows(node):
        raise Opaque("this function that returns rows")
    name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__
    arguments = [argument for key, argument in sorted(node.args.items()) if argument is not None and key != "is_outer"]
    parts = [part for arg in arguments for part in (arg if isinstance(arg, list) else [arg])]
    if any(not isinstance(part, exp.Expr) for part in parts) and not isinstance(node, exp.Anonymous):
        raise Opaque("this form of a function that returns rows")
    values = [reader.value(part, scope) for part in parts if isinstance(part, exp.Expr)]
    doubtful = is_volatile(node)
    # Only a non-deterministic generator depends on how the query is written.
    way = (scope.provenance.values_trace,) if doubtful and scope.provenance else ()
    # json_tuple makes one row of one row: its columns are plain values.
    if name == "json_tuple" and len(values) == len(names) + 1 and not doubtful:
        return None, [Term("json_tuple", (values[0], key)) for key in values[1:]]
    if (kind := _EXPLODING.get(name)) and len(values) == 1:
        # Columns are identified by their role, so that their aliases do not matter.
        titles = (["pos"] if kind[1] else []) + (["value"] if len(names) == 1 + kind[1] else ["key", "value"])
        return Term(f"generator {kind[0]}", (*values, *way), doubtful), list(titles)
    return Term(f"generator {name}", (*values, *way), doubtful), [str(index) for index in range(len(names))]


def apply_generator(
    block: Block, call: Value | None, columns: list[Part], names: Sequence[str], *, outer: bool
) -> tuple[Block, dict[str, Value]]:
    if len(columns) != len(names):
        raise Opaque("aliases for some of a generator's columns")
    if call is None:
        return block, dict(zip(names, map(as_value, columns), strict=True))
    generated = Generated(call)
    made: dict[str, Value] = {name: Ref(generated, column) for name, column in zip(names, columns, strict=True)}
    return block.add_step(LateralJoin(generated, outer)), made


def without_volatility(value: Value) -> Value:
    """Return the value as deterministic; an unknown function is assumed to make the same number of rows each time."""
    if isinstance(value, Term):
        parts = tuple(without_volatility(p) if isinstance(p, (Term, Ref)) else p for p in value.parts)
        return replace(value, parts=parts, own_volatile=False)
    return value
