"""GROUP BY: a block becomes one row for each combination of keys, and expressions become values of those rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from sqlglot import exp

from mergeplan.planner.semantics.digests import Digests
from mergeplan.planner.semantics.expressions import Reader, has_op
from mergeplan.planner.semantics.query.algebra import Block, Opaque, Part, Ref, Relation, Term, Value
from mergeplan.planner.semantics.query.rewrites import flatten_conjuncts
from mergeplan.planner.semantics.query.row_order import RowProvenance
from mergeplan.planner.semantics.query.scope import Scope
from mergeplan.planner.semantics.query.sources import Group, is_constant
from mergeplan.planner.semantics.query.unique import mark_deterministic_aggregate
from mergeplan.planner.semantics.result_types import PLAIN
from mergeplan.planner.semantics.syntax import clause_keys
from mergeplan.planner.semantics.types import type_of

# Operations with the same result for all equal keys of a group, even for keys that look different (0.0 and -0.0). A
# predicate made of these may be applied before the rows are grouped.
_ALIKE = frozenset(("EQ", "NEQ", "LT", "LTE", "NullSafeEQ", "is null", "in", "any of", "and", "or", "not"))
# Their results are no floating point numbers, so that equal results also look alike.
_OF_NO_FLOAT = frozenset(
    "Year Month Day Quarter Hour TsOrDsToDate TimestampTrunc DateTrunc Lower Upper Trim Substring Length".split()
)
_CUBED = 5  # columns of a CUBE that is expanded into its 2^n grouping sets
_SETS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_LITERALS = frozenset(("int", "number", "text", "NULL", "TRUE", "FALSE"))


class Among:
    """The digests of the values of one block, to recognise two spellings of the same value."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._digests = Digests()
        # Within one query the identity of a source is a good name: these digests are never stored.
        self._own = {source: f"own {id(source)}" for source in block.all_sources}

    def digest(self, value: Value) -> str:
        around = {source: f"outer {id(source)}" for source in value.free if source not in self._own}
        return self._digests.part(value, around | self._own)


@dataclass(frozen=True)
class Grouping:
    """A group and its keys by digest, which rewrites values of the ungrouped rows as values of the groups."""

    group: Group
    among: Among
    keys: Mapping[str, Value]

    def lift_value(self, value: Part) -> Part:
        """Return the value over the group's rows; raise Opaque for a column that is neither a key nor aggregated."""
        if isinstance(value, str):
            return value
        if isinstance(value, (Term, Ref)):
            if (key := self.keys.get(self.among.digest(value))) is not None:
                # GROUP BY x, f(x): the group has one x of several equal ones, and f of another one may look different.
                if isinstance(value, Term) and value.op not in _OF_NO_FLOAT and self._holds_key(value):
                    raise Opaque("a GROUP BY key that is part of another key")
                return Ref(self.group, key)
            if isinstance(value, Term) and value.op == "aggregate":
                return Ref(self.group, mark_deterministic_aggregate(value, self.group))
        if isinstance(value, Term) and value.op not in ("exists", "scalar"):
            return replace(value, parts=tuple(self.lift_value(part) for part in value.parts))
        if value.free & frozenset(self.among.block.all_sources):
            raise Opaque("a column that is neither a GROUP BY key nor aggregated")
        return value

    def _holds_key(self, value: Term) -> bool:
        """Return True if a key is computed from another key whose equal values may look different."""
        return any(
            not isinstance(part, str)
            and (
                (isinstance(part, (Term, Ref)) and type_of(part) not in PLAIN and self.among.digest(part) in self.keys)
                or (isinstance(part, Term) and self._holds_key(part))
            )
            for part in value.parts
        )


def group_block(
    block: Block, keys: Sequence[Value], sets: Value | None, having: Value | None, provenance: RowProvenance
) -> tuple[Grouping, Block]:
    """Return the block with its rows grouped, and HAVING applied; predicates on keys alone filter before grouping."""
    among = Among(block)
    by_digest = {among.digest(key): key for key in keys}
    early, late = list[Value](), list[Value]()
    for predicate in flatten_conjuncts([having]) if having else []:
        # ROLLUP and the like add groups in which a key is NULL, so that the predicate must wait for them.
        (early if keys and sets is None and _is_of_keys(among, predicate, by_digest) else late).append(predicate)
    group = Group(block.add_predicates(early), tuple(keys), provenance, sets)
    grouping = Grouping(group, among, by_digest)
    predicates = [as_value(grouping.lift_value(predicate)) for predicate in late]
    return grouping, Block((group,), (), tuple(predicates))


def distinct_relation(relation: Relation, provenance: RowProvenance) -> Relation:
    group = Group(relation.block, tuple(relation.columns.values()), provenance)
    return Relation(Block((group,)), {name: Ref(group, value) for name, value in relation.columns.items()})


def as_value(part: Part) -> Value:
    assert isinstance(part, (Term, Ref))
    return part


def has_aggregate(value: Part) -> bool:
    return has_op(value, "aggregate")


def group_keys(
    reader: Reader, node: exp.Select, scope: Scope, outputs: Mapping[str, Value]
) -> tuple[list[Value], Value | None]:
    group = node.args.get("group")
    if group is None:
        return [], None
    if group.args.get("all"):
        if any(has_op(value, "window") for value in outputs.values()):
            raise Opaque("GROUP BY ALL beside a window")
        if "all" in {*outputs, *(name for columns in scope.tables.values() for name in columns)}:
            raise Opaque("GROUP BY ALL beside a column `all`")
        # Spark adds such columns as keys, but the parser does not show which ones.
        if any(has_aggregate(value) and _uses_bare(value) for value in outputs.values()):
            raise Opaque("GROUP BY ALL with columns beside an aggregate")
        return [value for value in outputs.values() if not has_aggregate(value)], None
    if odd := set(clause_keys(group)) - {"expressions", "cube", "rollup", "grouping_sets"}:
        raise Opaque(f"GROUP BY with {', '.join(sorted(odd)).upper()}")
    sets = [grouping_set for kind in ("cube", "rollup", "grouping_sets") for grouping_set in group.args.get(kind) or ()]
    sets += [expression for expression in group.expressions if isinstance(expression, _SETS)]
    places = (exp.Group, *_SETS, exp.Tuple, exp.Paren)  # where a number names an output: `1`, `CUBE(1)`
    if any(isinstance(literal.parent, places) for literal in group.find_all(exp.Literal)):
        raise Opaque("a number in GROUP BY")
    keys = [reader.value(expression, scope) for expression in group.expressions if not isinstance(expression, _SETS)]
    if not sets:
        return keys, None
    if any(isinstance(field, exp.Alias) for row in group.find_all(exp.Tuple) for field in row.expressions):
        raise Opaque("a struct in a grouping set")  # `(a AS b, c)` is no list of keys
    are_sets = [isinstance(expression, _SETS) for expression in group.expressions]
    if are_sets != sorted(are_sets) and any(not number.expressions for number in node.find_all(exp.GroupingId)):
        raise Opaque("GROUPING_ID() of keys behind a grouping set")  # it numbers them in the order of the text
    if any(map(is_constant, keys)):
        raise Opaque("a constant in a grouping of several sets")
    inner = [column for grouping_set in sets for column in _set_members(grouping_set)]
    whole = [grouping_set for grouping_set in sets if not grouping_set.expressions]  # WITH ROLLUP: over all the keys
    if whole and len(sets) > 1:
        raise Opaque("several grouping sets, one of them over all keys")
    set_terms = [_grouping_set(reader, grouping_set, scope) for grouping_set in sets]
    if whole:
        return keys, Term("sets", ("then", _expand_grouping_sets(type(whole[0]).__name__, keys)))
    # `GROUP BY a, b GROUPING SETS (...)` only names the keys of its sets; behind a comma, the sets are further ones.
    named_only = keys and any(grouping_set.arg_key != "expressions" for grouping_set in sets)
    all_sets = Term("sets", (*keys, "of" if named_only else "then", *set_terms))
    return [*keys, *(reader.value(member, scope) for member in inner)], all_sets


def _grouping_set(reader: Reader, node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node, (*_SETS, exp.Tuple)):
        members = [_grouping_set(reader, member, scope) for member in node.expressions]
        if isinstance(node, exp.Tuple):
            return Term("Tuple", tuple(members))
        return _expand_grouping_sets(type(node).__name__, members)
    if isinstance(node, exp.Paren):
        return Term("Tuple", (_grouping_set(reader, node.this, scope),))
    return reader.value(node, scope)


def _expand_grouping_sets(kind: str, members: Sequence[Value]) -> Value:
    """Return ROLLUP and CUBE as the equivalent GROUPING SETS, in the order that GROUPING_ID numbers them."""
    if any(isinstance(member, Term) and member.op == "GroupingSets" for member in members):
        return Term(kind, tuple(members))  # one inside another
    count = len(members)
    if kind == "GroupingSets":
        return Term(kind, tuple(_flatten_tuple([member]) for member in members))
    if kind == "Rollup":
        return Term("GroupingSets", tuple(_flatten_tuple(members[:length]) for length in range(count, -1, -1)))
    if count > _CUBED:
        return Term(kind, tuple(members))
    chosen = (member for length in range(count, -1, -1) for member in combinations(members, length))
    return Term("GroupingSets", tuple(map(_flatten_tuple, chosen)))


def _flatten_tuple(members: Sequence[Value]) -> Value:
    parts = (member.parts if isinstance(member, Term) and member.op == "Tuple" else [member] for member in members)
    return Term("Tuple", tuple(chain.from_iterable(parts)))


def _is_of_keys(among: Among, value: Value, keys: Mapping[str, Value]) -> bool:
    """Return True for comparisons of keys with literals."""
    if among.digest(value) in keys:
        return not isinstance(value, Term)
    if isinstance(value, Term):
        if value.op in _LITERALS:
            return True
        parts = [part for part in value.parts if isinstance(part, (Term, Ref))]
        return value.op in _ALIKE and all(_is_of_keys(among, part, keys) for part in parts)
    return False


def _uses_bare(value: Value) -> bool:
    """Return True if an output uses columns outside its aggregates."""
    if isinstance(value, Term) and value.op == "aggregate":
        return False
    if isinstance(value, Ref):
        return True
    return any(_uses_bare(part) for part in value.parts if isinstance(part, (Term, Ref)))


def _set_members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, (*_SETS, exp.Tuple)):
        return [member for child in node.expressions for member in _set_members(child)]
    return _set_members(node.this) if isinstance(node, exp.Paren) else [node]
