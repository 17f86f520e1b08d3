"""Find columns that identify the rows of a block: an ORDER BY on them is deterministic.

`ROW_NUMBER() OVER (PARTITION BY k ORDER BY t)` picks any of the rows that agree in `k` and `t`. If no two rows do, it
is a function of the rows, and computing it again returns the same. This is known from a GROUP BY, a DISTINCT or a
`ROW_NUMBER() ... = 1`, of the query itself or of a model that it reads, or from a key that a blocking audit enforces.

Two values are alike here if GROUP BY treats them as one: NULL and NULL, 0.0 and -0.0, texts that a collation makes
equal. ORDER BY has no other ties, so that values that differ for one differ for the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import TypeAlias, TypeGuard

from mergeplan.planner.semantics.query.algebra import Block, Part, Ref, Relation, Source, Term, Value
from mergeplan.planner.semantics.query.sources import Group, Sealed, TableSource, is_constant

Keys: TypeAlias = tuple[tuple[str, ...], ...]  # names of columns; no two rows agree in all the columns of one key
_Key: TypeAlias = tuple[Value, ...]
_MOST = 16  # the limit of examined keys of one block
# Functions that depend only on the order of a window's rows; unknown functions and RAND depend on more.
_ORDERED = frozenset(
    "RowNumber Ntile Lag Lead First Last FirstValue LastValue NthValue AnyValue ArrayAgg ArgMax ArgMin".split()
)
_EXTREME = ("ArgMax", "ArgMin")


def mark_deterministic_window(window: Term, block: Block) -> Term:
    """Return the window over this block, as deterministic and independent of row order if its order has no ties."""
    function, partition, order, frame, *further_parts = window.parts
    values = [*_value_parts(partition), *(_sort_value(key) for key in _value_parts(order))]
    if not _tells_apart(block, values):
        return window
    frame = _without_way(frame) if _is_term(frame, "WindowSpec") else frame
    return replace(window, parts=(_deterministic_function(function), partition, order, frame, *further_parts))


def mark_deterministic_aggregate(aggregate: Term, group: Group) -> Term:
    """Return MAX_BY or MIN_BY as deterministic if no two rows of its group have the same extreme."""
    op, *parts = aggregate.parts
    if op not in _EXTREME or group.sets is not None or parts[:1] != ["expression"] or parts[2:4] != ["end", "this"]:
        return aggregate
    by = parts[1]
    if not isinstance(by, (Term, Ref)) or parts[5:6] != ["end"] or not _tells_apart(group.block, [*group.keys, by]):
        return aggregate
    return _without_way(aggregate)


def keys_of(relation: Relation) -> Keys:
    """Return the keys of a query that follow from it and from the models that it reads, without audits."""
    unique: dict[tuple[str, ...], None] = {}
    for key in _block_keys(relation.block, audited=False):
        names = [_output_name(relation, value) for value in key]
        if all(names):
            unique[tuple(sorted({name for name in names if name}))] = None
    return tuple(sorted(unique))


def _tells_apart(block: Block, values: Sequence[Value]) -> bool:
    return any(
        all(any(_is_same_value(part, value) for value in values) for part in key)
        for key in _block_keys(block, audited=True)
    )


def _block_keys(block: Block, *, audited: bool) -> list[_Key]:
    """Return sets of values of a block's rows in which no two of its rows agree.

    A row consists of one row of each source: keys of all sources together identify it. A step appends the rows that it
    finds for a row, or one row of NULLs if it finds nothing. Among the rows found for one row, its own key identifies
    them.
    """
    sources: list[Source] = [*block.sources, *(step.source for step in block.steps if not step.is_lookup)]
    units: list[list[_Key]] = []
    # `ROW_NUMBER() OVER (PARTITION BY k ...) = 1`: `k` identifies the rows of these sources
    firsts = []
    for predicate in block.where:
        if not isinstance(predicate, Term) or predicate.op != "EQ":
            continue
        for window, number in (predicate.parts, predicate.parts[::-1]):
            is_number = _is_term(number, "int") or (_is_term(number, "constant") and _is_term(number.parts[0], "int"))
            if not _is_term(window, "window") or not is_number:
                continue
            function, partition, *_, over = window.parts
            if _is_term(function, "window function") and function.parts[0] == "RowNumber" and isinstance(over, Block):
                firsts.append((over.all_sources, tuple(_value_parts(partition))))
    for covered, key in firsts:
        if all(any(source is candidate for candidate in sources) for source in covered):
            sources = [candidate for candidate in sources if not any(candidate is source for source in covered)]
            units.append([key, *_combine_keys([_source_keys(part, audited=audited) for part in covered])])
    units += [_source_keys(candidate, audited=audited) for candidate in sources]
    return _combine_keys(units)


def _combine_keys(units: Iterable[list[_Key]]) -> list[_Key]:
    chosen = islice(product(*units), _MOST)
    return [tuple(value for key in keys for value in key) for keys in chosen]


def _source_keys(source: Source, *, audited: bool) -> list[_Key]:
    if isinstance(source, TableSource):
        named = (*source.keys, *(source.audited if audited else ()))
        return [tuple(Ref(source, column) for column in key) for key in named]
    if isinstance(source, Group) and source.sets is None:
        return [tuple(Ref(source, key) for key in source.keys if not is_constant(key))]
    if isinstance(source, Sealed):
        return [tuple(Ref(source, value) for value in key) for key in _block_keys(source.block, audited=audited)]
    return []  # of FULL JOIN, both sides may be NULL in two rows; of others nothing is known


def _sort_value(ordered: Value) -> Value:
    if not isinstance(ordered, Term) or ordered.op != "Ordered" or "this" not in ordered.parts:
        return ordered
    this = ordered.parts[ordered.parts.index("this") + 1]
    return this if isinstance(this, (Term, Ref)) else ordered


def _deterministic_function(function: Part) -> Part:
    """Return the function of a window as deterministic if it depends on the order of the rows alone."""
    if _is_term(function, "IgnoreNulls", "RespectNulls", "filter"):
        inner, *further_parts = function.parts
        return replace(function, parts=(_deterministic_function(inner), *further_parts))
    if _is_term(function, "window function") and function.parts[0] in _ORDERED:
        return _without_way(function)
    return function


def _without_way(term: Term) -> Term:
    parts = tuple(part for part in term.parts if not _is_term(part, "way"))
    return replace(term, parts=parts, own_volatile=False)


def _output_name(relation: Relation, value: Value) -> str | None:
    return next((name for name, shown in relation.columns.items() if _is_same_value(shown, value)), None)


def _is_same_value(one: Part, two: Part) -> bool:
    """Return True for two references to one column, or to one key of a group."""
    if isinstance(one, Ref) and isinstance(two, Ref):
        return one.source is two.source and _is_same_value(one.inner, two.inner)
    return one == two if isinstance(one, str) else one is two


def _value_parts(part: Part) -> list[Value]:
    return [inner for inner in part.parts if isinstance(inner, (Term, Ref))] if isinstance(part, Term) else []


def _is_term(part: Part, *ops: str) -> TypeGuard[Term]:
    return isinstance(part, Term) and part.op in ops
