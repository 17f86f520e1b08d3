"""From a qualified SQL query to a relation: FROM, joins, WHERE, GROUP BY, DISTINCT, set operations, LIMIT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from planner.functions import is_stranger, is_volatile, multiplies_rows
from planner.meaning import rules
from planner.meaning.expressions import Reader, Scope, has_op, placed
from planner.meaning.grouping import Grouping, as_value, distinct, folds, grouped
from planner.meaning.prepare import WRITTEN
from planner.meaning.sources import (
    Compound,
    Full,
    Generated,
    Group,
    Limit,
    Sealed,
    Source,
    Table,
    Union,
    Values,
    column_at,
    is_constant,
)
from planner.meaning.terms import Block, Opaque, Part, Ref, Relation, Step, Term, Value
from planner.meaning.types import are_of_one_type

_KNOWN_CLAUSES = frozenset(
    """expressions from_ joins laterals where group having qualify windows distinct order limit offset with_ hint
    sort cluster distribute kind""".split()
)
_MAX_QUERIES = 1000
_EXPLODING = {  # name -> how its rows come about, and whether it numbers them
    "Explode": ("explode", False),
    "Posexplode": ("explode", True),
    "ExplodeOuter": ("explode outer", False),
    "PosexplodeOuter": ("explode outer", True),
}
_SETS = (exp.Cube, exp.Rollup, exp.GroupingSets)


@dataclass(frozen=True)
class With:
    """The CTEs in force: name -> its query and the CTEs in force where it stands."""

    queries: Mapping[str, tuple[exp.Expr, With]] = field(default_factory=dict)


@dataclass
class Query:
    """Reads the query of one model over these tables (name -> source made anew for each appearance)."""

    tables: Mapping[str, Table]
    columns: Mapping[str, tuple[str, ...]]
    unsure: frozenset[int] = frozenset()
    _chances: dict[int, int] = field(default_factory=dict)
    _queries: int = 0

    def __post_init__(self) -> None:
        self._ctes = With()
        self._reader = Reader(self._nested, self.unsure)

    def relation(self, tree: exp.Expr) -> Relation:
        """The whole query's answer; Opaque when its meaning is not known here."""
        return self._query(tree, With(), None)

    def _nested(self, node: exp.Expr, scope: Scope) -> Relation:
        return self._query(node, self._ctes, scope)

    def _query(self, node: exp.Expr, ctes: With, outer: Scope | None) -> Relation:
        self._queries += 1
        if self._queries > _MAX_QUERIES:
            raise Opaque("a CTE that is used again and again")
        before, self._ctes = self._ctes, self._with(node, ctes)
        try:
            return self._read(node, outer)
        finally:
            self._ctes = before

    def _with(self, node: exp.Expr, ctes: With) -> With:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        if clause.args.get("recursive"):
            raise Opaque("a recursive CTE")
        for cte in clause.expressions:
            if cte.args["alias"].columns:
                raise Opaque("a CTE that renames its columns")
            ctes = With({**ctes.queries, cte.alias.lower(): (cte.this, ctes)})
        return ctes

    def _read(self, node: exp.Expr, outer: Scope | None) -> Relation:
        match node:
            case exp.Subquery():
                if set(_given(node)) - {"this", "with_", "alias"}:
                    raise Opaque("a subquery with clauses of its own")
                return self._query(node.this, self._ctes, outer)
            case exp.Select():
                return self._select(node, outer)
            case exp.SetOperation():
                return self._set_operation(node, outer)
        raise Opaque(type(node).__name__)

    # -- SELECT

    def _select(self, node: exp.Select, outer: Scope | None) -> Relation:
        if odd := set(_given(node)) - _KNOWN_CLAUSES:
            raise Opaque(f"clauses {sorted(odd)}")
        if node.args.get("kind") or (_has(node, "sort", "cluster", "distribute") and _has(node, "limit", "offset")):
            raise Opaque("an unusual SELECT")
        block, scope = self._from(node, outer)
        _settle_using(node)
        if (whole := self._only_star(node, block, scope)) is not None:
            return whole
        windows = {each.name.lower(): each for each in node.args.get("windows") or ()}
        if where := node.args.get("where"):
            block, scope = _pushed(block.kept(rules.filters(self._reader.value(where.this, scope))), scope)
        relation, order = self._outputs(node, block, scope, windows)
        if id(node) in self.unsure:
            unsure = Term("looks beyond its day", (), own_volatile=True)
            relation = replace(relation, block=relation.block.kept([unsure]))
        if given := node.args.get("distinct"):
            if given.args.get("on"):
                raise Opaque("DISTINCT ON")
            relation, order = relation if _tells_groups_apart(relation) else distinct(relation), []
        if _has(node, "limit", "offset"):
            if node.args.get("distinct") and node.args.get("order"):
                raise Opaque("DISTINCT with ORDER BY and LIMIT")
            return self._limited(node, relation, order)
        return relation

    def _only_star(self, node: exp.Select, block: Block, scope: Scope) -> Relation | None:
        """`SELECT *` alone is left where columns are not known by name (PIVOT); Opaque for any other star."""
        if not any(isinstance(each, exp.Star) or each.is_star for each in node.selects):
            return None
        if len(node.selects) > 1 or len(scope.tables) > 1 or set(_given(node)) - {"expressions", "from_"}:
            raise Opaque("a star over unknown columns")
        (columns,) = scope.tables.values()
        return Relation(block, columns)

    def _outputs(
        self, node: exp.Select, block: Block, scope: Scope, windows: Mapping[str, exp.Expr]
    ) -> tuple[Relation, list[Value]]:
        """The projected relation and the values of ORDER BY."""
        raw: dict[str, Value | exp.Expr] = {}
        for output in node.selects:
            name = output.alias_or_name.lower()
            name = f"{name} {len(raw)}" if name in raw else name  # nobody can ask for it by name
            if isinstance(output, exp.Aliases):
                raw[f"{len(raw)} aliases"] = output
            elif not name:
                raise Opaque("an output without a name")
            elif multiplies_rows(output.unalias()):
                raw[name] = output
            else:
                raw[name] = self._reader.value(output.unalias(), scope, windows)
        values = {name: value for name, value in raw.items() if not isinstance(value, exp.Expr)}
        having = node.args.get("having")
        condition = self._reader.value(having.this, scope, windows) if having else None
        order = self._order(node, scope, windows, values) if _has(node, "limit", "offset") else []
        lift: Grouping | None = None
        if node.args.get("group") or any(map(folds, (*values.values(), *([condition] if condition else [])))):
            keys, sets = self._keys(node, scope, values)
            lift, block = grouped(block, keys, sets, condition)
        elif condition is not None:
            raise Opaque("HAVING without a group")

        def final(value: Value) -> Value:
            return as_value(placed(lift.lifted(value) if lift else value, windowed))

        windowed = block
        columns: dict[str, Value] = {}
        for name, value in raw.items():
            if isinstance(value, exp.Expr):
                if node.args.get("qualify") or any(has_op(each, "window") for each in values.values()):
                    raise Opaque("a generator beside a window")
                block, made = self._generated(value, scope, block, lift)
                columns |= made
            else:
                columns[name] = final(value)
        if qualify := node.args.get("qualify"):
            block = block.kept(
                [final(each) for each in rules.filters(self._reader.value(qualify.this, scope, windows))]
            )
        block = self._with_strangers(node, scope, block, columns)
        return Relation(block, columns), [final(value) for value in order]

    def _with_strangers(self, node: exp.Select, scope: Scope, block: Block, columns: Mapping[str, Value]) -> Block:
        """A function nobody knows may make rows: it counts as a step of its own."""
        for output in node.selects:
            name = output.alias_or_name.lower()
            if name in columns and any(is_stranger(each) for each in output.find_all(exp.Func)):
                block = block.with_step(Step(Generated(Term("maybe rows", (_calm(columns[name]),)))))
        return block

    def _keys(self, node: exp.Select, scope: Scope, outputs: Mapping[str, Value]) -> tuple[list[Value], Value | None]:
        group = node.args.get("group")
        if group is None:
            return [], None
        if group.args.get("all"):
            if any(has_op(value, "window") for value in outputs.values()):
                raise Opaque("GROUP BY ALL beside a window")
            if any(folds(value) and _uses_bare(value) for value in outputs.values()):
                raise Opaque("GROUP BY ALL with columns beside an aggregate")
            return [value for value in outputs.values() if not folds(value)], None
        if odd := set(_given(group)) - {"expressions", "cube", "rollup", "grouping_sets"}:
            raise Opaque(f"GROUP BY with {sorted(odd)}")
        sets = [each for kind in ("cube", "rollup", "grouping_sets") for each in group.args.get(kind) or ()]
        sets += [each for each in group.expressions if isinstance(each, _SETS)]
        if any(map(_is_ordinal, group.find_all(exp.Literal))):
            raise Opaque("a number in GROUP BY")
        keys = [self._reader.value(each, scope) for each in group.expressions if not isinstance(each, _SETS)]
        if not sets:
            return keys, None
        inner = [column for each in sets for column in _set_members(each)]
        whole = [each for each in sets if not each.expressions]  # WITH ROLLUP: over all the keys
        if whole and len(sets) > 1:
            raise Opaque("several groupings, one of them over all keys")
        sets_told = [self._grouping_set(each, scope) for each in sets]
        if whole:
            return keys, Term("sets", ("then", Term(type(whole[0]).__name__, tuple(keys))))
        told = Term("sets", (*keys, "then", *sets_told))
        return [*keys, *(self._reader.value(each, scope) for each in inner)], told

    def _grouping_set(self, node: exp.Expr, scope: Scope) -> Value:
        """ROLLUP, CUBE and GROUPING SETS, in the order they are written."""
        if isinstance(node, (*_SETS, exp.Tuple)):
            return Term(type(node).__name__, tuple(self._grouping_set(each, scope) for each in node.expressions))
        if isinstance(node, exp.Paren):
            return Term("Tuple", (self._grouping_set(node.this, scope),))
        return self._reader.value(node, scope)

    def _order(
        self, node: exp.Expr, scope: Scope, windows: Mapping[str, exp.Expr], outputs: Mapping[str, Value]
    ) -> list[Value]:
        order = node.args.get("order")
        values: list[Value] = []
        for each in order.expressions if order else ():
            bare = isinstance(each.this, exp.Column) and not each.this.table
            if bare and each.this.name.lower() in outputs:
                value = outputs[each.this.name.lower()]
            elif isinstance(each.this, exp.Literal):
                raise Opaque("ORDER BY a number")
            else:
                value = self._reader.value(each.this, scope, windows)
            values.append(Term("ordered", (str(bool(each.args.get("desc"))), str(each.args.get("nulls_first")), value)))
        return values

    def _limited(self, node: exp.Expr, relation: Relation, order: list[Value]) -> Relation:
        counts = []
        for key in ("limit", "offset"):
            clause = node.args.get(key)
            if clause is not None and not isinstance(clause, (exp.Limit, exp.Offset)):
                raise Opaque(type(clause).__name__)
            counts.append(self._reader.value(clause.expression, Scope()) if clause else Term("none"))
        limit = Limit(relation.block, tuple(order), tuple(counts))
        return Relation(Block((limit,)), {name: Ref(limit, value) for name, value in relation.columns.items()})

    # -- FROM

    def _from(self, node: exp.Select, outer: Scope | None) -> tuple[Block, Scope]:
        block, scope = Block(), Scope(outer=outer)
        clause = node.args.get("from_")
        if clause is not None:
            alias, relation = self._item(clause.this, outer)
            block, scope = relation.block, scope.having(alias, relation.columns)
        for join in node.args.get("joins") or ():
            block, scope = self._join(join, block, scope)
        for lateral in node.args.get("laterals") or ():
            block, scope = self._lateral(lateral, block, scope, outer=bool(lateral.args.get("outer")))
        return block, scope

    def _item(self, node: exp.Expr, outer: Scope | None) -> tuple[str, Relation]:
        """One table, CTE or subquery of FROM, under its alias."""
        alias = node.alias_or_name.lower()
        if isinstance(node, exp.Table):
            relation = self._table(node)
        elif isinstance(node, exp.Values):
            relation = self._values(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            relation = self._query(node.this, self._ctes, None)
        else:
            raise Opaque(type(node).__name__)
        if names := [each.name.lower() for each in _alias_columns(node)]:
            if len(names) != len(relation.columns):
                raise Opaque("an alias for some columns")
            relation = replace(relation, columns=dict(zip(names, relation.columns.values(), strict=True)))
        if set(_given(node)) & {"joins", "laterals", "when", "changes", "partition", "version", "hints", "only"}:
            raise Opaque("a table with clauses of its own")
        pivots = node.args.get("pivots") or [node]
        return pivots[-1].alias.lower() or alias, _reshaped(node, relation)

    def _table(self, node: exp.Table) -> Relation:
        name = node.name.lower()
        if not isinstance(node.this, exp.Identifier):
            raise Opaque("a function in FROM")
        if not node.db and name in self._ctes.queries:
            query, ctes = self._ctes.queries[name]
            return self._cte(query, ctes)
        full = f"{node.db.lower()}.{name}"
        if full not in self.tables or node.catalog:
            raise Opaque(full)
        table = replace(self.tables[full])  # an appearance of its own
        return Relation(Block((table,)), {column: Ref(table, column) for column in self.columns[full]})

    def _cte(self, query: exp.Expr, ctes: With) -> Relation:
        """Each use reads the CTE anew, but what chance says in it is said once."""
        now = self._reader.chances
        self._reader.chances = self._chances.setdefault(id(query), now)
        try:
            return self._query(query, ctes, None)
        finally:
            self._reader.chances = max(now, self._reader.chances)

    def _values(self, node: exp.Values) -> Relation:
        rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
        values = tuple(tuple(self._reader.value(cell, Scope()) for cell in row) for row in rows)
        source = Values(values)
        names = [each.name.lower() for each in _alias_columns(node)]
        names = names or [f"col{index + 1}" for index in range(len(rows[0]))]
        return Relation(Block((source,)), {name: Ref(source, str(index)) for index, name in enumerate(names)})

    def _join(self, join: exp.Join, block: Block, scope: Scope) -> tuple[Block, Scope]:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if join.args.get("using") or (join.method or "").upper() not in ("", "NATURAL") or kind in ("SEMI", "ANTI"):
            raise Opaque("an unusual join")
        if isinstance(join.this, exp.Lateral):
            if join.args.get("on") and not isinstance(join.args["on"], exp.Boolean):
                raise Opaque("a condition on LATERAL")
            return self._lateral(join.this, block, scope, outer=side == "LEFT")
        alias, right = self._item(join.this, scope.outer)
        if side == "FULL":
            return self._full(join, block, right, scope, alias)
        both = scope.having(alias, right.columns)
        condition = join.args.get("on")
        on = rules.filters(self._reader.value(condition, both)) if condition else []
        if not side:
            return block.times(right.block).kept(on), both
        if side == "LEFT":
            sealed = Sealed(right.block.kept(on))
            columns = {name: Ref(sealed, value) for name, value in right.columns.items()}
            return block.with_step(Step(sealed, outer=True)), scope.having(alias, columns)
        if side == "RIGHT":
            sealed = Sealed(block.kept(on))
            return right.block.with_step(Step(sealed, outer=True)), _through(sealed, scope).having(alias, right.columns)
        raise Opaque(side)

    def _full(self, join: exp.Join, block: Block, right: Relation, scope: Scope, alias: str) -> tuple[Block, Scope]:
        one, two = Sealed(block), Sealed(right.block)
        theirs: dict[str, Value] = {name: Ref(two, value) for name, value in right.columns.items()}
        both = _through(one, scope).having(alias, theirs)
        condition = join.args.get("on")
        full = Full(one, two, tuple(rules.filters(self._reader.value(condition, both)) if condition else ()))
        tables = {name: {c: Ref(full, value) for c, value in columns.items()} for name, columns in both.tables.items()}
        return Block((full,)), replace(both, tables=tables)

    def _lateral(self, node: exp.Lateral, block: Block, scope: Scope, *, outer: bool) -> tuple[Block, Scope]:
        """LATERAL VIEW and LATERAL joins: rows found for each row."""
        alias, inner = node.alias_or_name.lower(), node.this
        names = [each.name.lower() for each in _alias_columns(node)]
        if isinstance(inner, (exp.Subquery, exp.Query)):
            relation = self._query(inner, self._ctes, scope)
            sealed = Sealed(relation.block)
            columns: dict[str, Value] = {name: Ref(sealed, value) for name, value in relation.columns.items()}
            if names and len(names) != len(columns):
                raise Opaque("an alias for some columns")
            columns = dict(zip(names, columns.values(), strict=True)) if names else columns
            return block.with_step(Step(sealed, outer)), scope.having(alias, columns)
        if not multiplies_rows(inner) or not names:
            raise Opaque("LATERAL of an unknown function")
        call, made = self._call(inner, scope, names)
        block, found = _made(block, call, made, names, outer=outer)
        return block, scope.having(alias, found)

    def _generated(
        self, output: exp.Expr, scope: Scope, block: Block, lift: Grouping | None
    ) -> tuple[Block, dict[str, Value]]:
        """explode and its like among the outputs."""
        names = (
            [each.name.lower() for each in output.expressions]
            if isinstance(output, exp.Aliases)
            else [output.alias_or_name.lower()]
        )
        call, columns = self._call(output.this, scope, names)
        if lift:
            call = as_value(lift.lifted(call)) if call else None
            columns = [lift.lifted(each) for each in columns]
        return _made(block, call, columns, names, outer=False)

    def _call(self, node: exp.Expr, scope: Scope, names: list[str]) -> tuple[Value | None, list[Part]]:
        """How many rows a generator makes of one (None: one), and what each of its columns is."""
        if not multiplies_rows(node):
            raise Opaque("no generator")
        name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__
        given = [each for key, each in sorted(node.args.items()) if each is not None and key != "is_outer"]
        parts = [each for arg in given for each in (arg if isinstance(arg, list) else [arg])]
        if any(not isinstance(each, exp.Expr) for each in parts) and not isinstance(node, exp.Anonymous):
            raise Opaque("an unusual generator")
        values = [self._reader.value(each, scope) for each in parts if isinstance(each, exp.Expr)]
        doubtful = is_volatile(node) or id(node) in self.unsure
        if name == "json_tuple" and len(values) == len(names) + 1 and not doubtful:
            return None, [Term("json_tuple", (values[0], key)) for key in values[1:]]
        if (kind := _EXPLODING.get(name)) and len(values) == 1:
            titles = (["pos"] if kind[1] else []) + (["value"] if len(names) == 1 + kind[1] else ["key", "value"])
            return Term(f"generator {kind[0]}", tuple(values), doubtful), list(titles)
        return Term(f"generator {name}", tuple(values), doubtful), [str(index) for index in range(len(names))]

    # -- set operations

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> Relation:
        known = {"this", "expression", "distinct", "order", "limit", "offset", "with_"}
        if set(_given(node)) - known:
            raise Opaque("an unusual set operation")
        left = self._query(node.this, self._ctes, outer)
        right = self._query(node.expression, self._ctes, outer)
        if len(left.columns) != len(right.columns):
            raise Opaque("branches of different width")
        relation = _united(node, left, right)
        if not _has(node, "limit", "offset"):
            return relation
        return self._limited(node, relation, self._order(node, Scope(), {}, relation.columns))


def _united(node: exp.SetOperation, left: Relation, right: Relation) -> Relation:
    every = not node.args.get("distinct")
    if not isinstance(node, exp.Union):
        kind = f"{type(node).__name__.upper()}{' ALL' if every else ''}"
        compound = Compound(kind, (left, right))
        columns: dict[str, Value] = {name: Ref(compound, str(i)) for i, name in enumerate(left.columns)}
        return Relation(Block((compound,)), columns)
    if not every:
        left, right = _as_set(left), _as_set(right)
    flat = (*_branches(left), *_branches(right))  # three types are widened otherwise at once than pair by pair
    union = Union(flat if _is_of_one_type(flat) else (left, right))
    columns = {}
    for index, (name, value) in enumerate(left.columns.items()):
        others = [list(branch.columns.values())[index] for branch in union.branches]
        columns[name] = value if _same_constant(others) else Ref(union, str(index))
    relation = Relation(Block((union,)), columns)
    return relation if every else distinct(relation)


def _is_of_one_type(branches: tuple[Relation, ...]) -> bool:
    columns = zip(*(branch.columns.values() for branch in branches), strict=True)
    return all(are_of_one_type(values) for values in columns)


def _tells_groups_apart(relation: Relation) -> bool:
    """True when each row is a group of its own, told from the others by its keys: no two rows are equal."""
    block = relation.block
    group = block.sources[0] if len(block.sources) == 1 and not block.steps else None
    if not isinstance(group, Group) or group.sets:
        return False
    shown = [value.inner for value in relation.columns.values() if isinstance(value, Ref) and value.source is group]
    return all(is_constant(key) or any(key is each for each in shown) for key in group.keys)


def _as_set(relation: Relation) -> Relation:
    """A relation of which only the set of rows matters, without a DISTINCT or GROUP BY that only makes it one."""
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


def _branches(relation: Relation) -> tuple[Relation, ...]:
    """The branches of a UNION ALL of which this is the plain answer, else the relation itself."""
    block = relation.block
    if block.is_plain and isinstance(block.sources[0], Union):
        union = block.sources[0]
        if [_place(value, union) for value in relation.columns.values()] == [
            str(index) for index in range(len(relation.columns))
        ] and len(relation.columns) == len(union.branches[0].columns):
            return union.branches
    return (relation,)


def _place(value: Value, union: Union) -> str | None:
    return str(value.inner) if isinstance(value, Ref) and value.source is union else None


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


def _through(source: Source, scope: Scope) -> Scope:
    """The scope with every column seen through a source that now holds its tables."""
    tables = {
        alias: {name: Ref(source, value) for name, value in columns.items()} for alias, columns in scope.tables.items()
    }
    return replace(scope, tables=tables)


class _Whatever(dict[str, Value]):
    """The columns of what has been pivoted: whatever name is asked for."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def __missing__(self, name: str) -> Value:
        return Ref(self.source, name)


def _reshaped(node: exp.Expr, relation: Relation) -> Relation:
    """The relation after TABLESAMPLE or PIVOT: what they do is taken from their text."""
    if sample := node.args.get("sample"):
        said = Term("text", (sample.sql("spark"),))
        source = Compound("SAMPLE", (relation,), (said,), shaky=True)
        names = list(relation.columns)
        relation = Relation(Block((source,)), {name: Ref(source, str(i)) for i, name in enumerate(names)})
    if pivots := node.args.get("pivots"):
        told = Term("text", tuple(map(_pivot_text, pivots)))
        source = Compound("PIVOT", (relation,), (told,))
        return Relation(Block((source,)), _Whatever(source))
    return relation


def _made(
    block: Block, call: Value | None, columns: list[Part], names: list[str], *, outer: bool
) -> tuple[Block, dict[str, Value]]:
    """The block with what a generator makes of each row, and its columns by name."""
    if len(columns) != len(names):
        raise Opaque("names for some of what is generated")
    if call is None:
        return block, dict(zip(names, map(as_value, columns), strict=True))
    generated = Generated(call)
    made: dict[str, Value] = {name: Ref(generated, column) for name, column in zip(names, columns, strict=True)}
    return block.with_step(Step(generated, outer)), made


def _settle_using(select: exp.Select) -> None:
    """A column that USING or NATURAL merges is the left one's, unless a join keeps rows that the left side lacks."""
    if any((join.side or "").upper() in ("RIGHT", "FULL") for join in select.args.get("joins") or ()):
        return
    for merged in list(select.find_all(exp.Coalesce)):
        if not merged.meta.get(WRITTEN) and merged.find_ancestor(exp.Select) is select:
            merged.replace(merged.this)


def _pushed(block: Block, scope: Scope) -> tuple[Block, Scope]:
    """A filter over UNION ALL as a filter in each of its branches."""
    if len(block.sources) != 1 or block.steps or not isinstance(block.sources[0], Union) or not block.where:
        return block, scope
    union = block.sources[0]
    if not _is_of_one_type(union.branches):
        return block, scope  # a branch's own values are narrower than the union's
    branches = []
    for branch in union.branches:
        where = [within(each, union, branch) for each in block.where]
        branches.append(replace(branch, block=branch.block.kept([each for each in where if each is not None])))
        if None in where:
            return block, scope
    pushed = Union(tuple(branches))
    tables = {
        alias: {name: _moved(value, union, pushed) for name, value in columns.items()}
        for alias, columns in scope.tables.items()
    }
    return Block((pushed,)), replace(scope, tables=tables)


def within(value: Value, union: Union, branch: Relation) -> Value | None:
    """A value of a union as a value of one of its branches; None where a subquery speaks of it."""
    if isinstance(value, Ref):
        return column_at(branch, value.inner) if value.source is union else value
    if union not in value.free:
        return value
    if any(isinstance(part, (Block, Relation)) for part in value.parts):
        return None
    parts = [part if isinstance(part, str) else within(as_value(part), union, branch) for part in value.parts]
    return None if None in parts else replace(value, parts=tuple(part for part in parts if part is not None))


def _moved(value: Value, union: Union, pushed: Union) -> Value:
    """A column of the union as the same one of the other."""
    if isinstance(value, Ref) and value.source is union:
        return Ref(pushed, value.inner)
    if union in value.free:
        raise Opaque("a column made from a union")
    return value


def _pivot_text(pivot: exp.Expr) -> str:
    """What a PIVOT says, over the one table that it is about."""
    told = pivot.copy()
    told.set("alias", None)
    for column in told.find_all(exp.Column):
        column.set("table", None)
    return told.sql("spark")


def _calm(value: Value) -> Value:
    """The value without its doubts: a stranger's rows are taken to be as many each time."""
    if isinstance(value, Term):
        return replace(
            value,
            parts=tuple(_calm(p) if isinstance(p, (Term, Ref)) else p for p in value.parts),
            own_volatile=False,
        )
    return value


def _uses_bare(value: Value) -> bool:
    """True when an output uses columns outside its aggregates."""
    if isinstance(value, Term) and value.op == "aggregate":
        return False
    if isinstance(value, Ref):
        return True
    return any(_uses_bare(part) for part in value.parts if isinstance(part, (Term, Ref)))


def _set_members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, (*_SETS, exp.Tuple)):
        return [member for each in node.expressions for member in _set_members(each)]
    return _set_members(node.this) if isinstance(node, exp.Paren) else [node]


def _is_ordinal(literal: exp.Literal) -> bool:
    """True for a number that names an output: `GROUP BY 1`, `GROUP BY CUBE(1)`."""
    return isinstance(literal.parent, (exp.Group, *_SETS, exp.Tuple, exp.Paren))


def _alias_columns(node: exp.Expr) -> list[exp.Expr]:
    alias = node.args.get("alias")
    return list(alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else []


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def _has(node: exp.Expr, *keys: str) -> bool:
    return any(node.args.get(key) for key in keys)
