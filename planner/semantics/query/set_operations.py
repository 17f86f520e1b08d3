"""Translate UNION, EXCEPT, INTERSECT and DISTINCT, so that equivalent ones become equal."""

from dataclasses import replace

from sqlglot import exp

from mergeplan.planner.semantics.query.aggregation import as_value, distinct_relation
from mergeplan.planner.semantics.query.algebra import Block, Opaque, Ref, Relation, Term, Value
from mergeplan.planner.semantics.query.row_order import RowProvenance
from mergeplan.planner.semantics.query.scope import Scope
from mergeplan.planner.semantics.query.sources import Compound, Group, Union, column_at, is_constant
from mergeplan.planner.semantics.types import are_of_one_type, is_collated


def apply_set_operation(node: exp.SetOperation, left: Relation, right: Relation, provenance: RowProvenance) -> Relation:
    every = not node.args.get("distinct")
    if not isinstance(node, exp.Union):
        kind = f"{type(node).__name__.upper()}{' ALL' if every else ''}"
        # With a collation, one of several equal rows is returned, and which one depends on their order.
        own_volatile = is_collated(left) or is_collated(right)
        compound = Compound(kind, (left, right), (provenance.rows_trace,) if own_volatile else (), own_volatile)
        columns: dict[str, Value] = {name: Ref(compound, str(i)) for i, name in enumerate(left.columns)}
        return Relation(Block((compound,)), columns)
    if not every:
        left, right = _as_set(left), _as_set(right)
    # Nested unions are flattened only for one type: three types are widened differently at once than pair by pair.
    flat = (*_union_branches(left), *_union_branches(right))
    union = Union(flat if _is_of_one_type(flat) else (left, right))
    columns = {}
    for index, (name, value) in enumerate(left.columns.items()):
        branch_values = [list(branch.columns.values())[index] for branch in union.branches]
        # A constant that all branches return can be used as such, for example as a GROUP BY key that splits no group.
        columns[name] = value if _same_constant(branch_values) else Ref(union, str(index))
    relation = Relation(Block((union,)), columns)
    return relation if every else distinct_relation(relation, provenance)


def _is_of_one_type(branches: tuple[Relation, ...]) -> bool:
    columns = zip(*(branch.columns.values() for branch in branches), strict=True)
    return all(are_of_one_type(values) for values in columns)


def tells_groups_apart(relation: Relation) -> bool:
    """Return True if each row is a group that shows all its keys, so that DISTINCT has no effect."""
    block = relation.block
    group = block.sources[0] if len(block.sources) == 1 and not block.steps else None
    if not isinstance(group, Group) or group.sets:
        return False
    shown = [value.inner for value in relation.columns.values() if isinstance(value, Ref) and value.source is group]
    return all(is_constant(key) or any(key is inner for inner in shown) for key in group.keys)


def _as_set(relation: Relation) -> Relation:
    """Return the relation without its own DISTINCT or GROUP BY: UNION removes duplicates anyway."""
    block = relation.block
    if not block.is_plain or not isinstance(block.sources[0], Group):
        return relation
    group = block.sources[0]
    columns: dict[str, Value] = {}
    for name, value in relation.columns.items():
        if isinstance(value, Ref) and value.source is group and any(value.inner is key for key in group.keys):
            columns[name] = as_value(value.inner)
        elif is_constant(value):
            columns[name] = value
        else:
            return relation
    return relation if group.sets or not group.keys else _as_set(Relation(group.block, columns))


def _union_branches(relation: Relation) -> tuple[Relation, ...]:
    block, columns = relation.block, relation.columns
    if block.is_plain and isinstance(block.sources[0], Union):
        union = block.sources[0]
        inner = [value.inner if isinstance(value, Ref) and value.source is union else "" for value in columns.values()]
        is_whole = len(columns) == len(union.branches[0].columns)
        if is_whole and [str(part) for part in inner] == [str(index) for index in range(len(columns))]:
            return union.branches
    return (relation,)


def _same_constant(values: list[Value]) -> bool:
    first = values[0]
    return all(
        isinstance(value, Term)
        and isinstance(first, Term)
        and is_constant(value)
        and not [part for part in value.parts if not isinstance(part, str)]
        and (value.op, value.parts) == (first.op, first.parts)
        for value in values
    )


def push_filter(block: Block, scope: Scope) -> tuple[Block, Scope]:
    if len(block.sources) != 1 or block.steps or not isinstance(block.sources[0], Union) or not block.where:
        return block, scope
    union = block.sources[0]
    if not _is_of_one_type(union.branches):
        return block, scope  # the union widens types, so a branch would compare in another type
    branches = []
    for branch in union.branches:
        where = [_move_to_branch(predicate, union, branch) for predicate in block.where]
        predicates = [predicate for predicate in where if predicate is not None]
        branches.append(replace(branch, block=branch.block.add_predicates(predicates)))
        if None in where:
            return block, scope
    # A source is immutable and compared by identity, so every column has to be moved to the new union.
    pushed = Union(tuple(branches))
    tables = {
        alias: {name: _move_column(value, union, pushed) for name, value in columns.items()}
        for alias, columns in scope.tables.items()
    }
    return Block((pushed,)), replace(scope, tables=tables)


def _move_to_branch(value: Value, union: Union, branch: Relation) -> Value | None:
    """Return a value of a union as a value of one of its branches, or None if a subquery uses it."""
    if isinstance(value, Ref):
        return column_at(branch, value.inner) if value.source is union else value
    if union not in value.free:
        return value
    if any(isinstance(part, (Block, Relation)) for part in value.parts):
        return None
    parts = [part if isinstance(part, str) else _move_to_branch(as_value(part), union, branch) for part in value.parts]
    return None if None in parts else replace(value, parts=tuple(part for part in parts if part is not None))


def _move_column(value: Value, union: Union, pushed: Union) -> Value:
    if isinstance(value, Ref) and value.source is union:
        return Ref(pushed, value.inner)
    if union in value.free:
        raise Opaque("a column that is computed from a set operation's rows")
    return value
