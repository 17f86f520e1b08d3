"""FROM: tables, CTEs, subqueries, joins and laterals, as one block and a scope with the names of its columns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from mergeplan.planner.semantics.expressions import Reader
from mergeplan.planner.semantics.normalize import WRITTEN
from mergeplan.planner.semantics.query import rewrites as rules
from mergeplan.planner.semantics.query.algebra import Block, LateralJoin, Opaque, Ref, Relation, Source, Term, Value
from mergeplan.planner.semantics.query.generators import apply_generator, call_of
from mergeplan.planner.semantics.query.row_order import RowProvenance, With
from mergeplan.planner.semantics.query.scope import Scope
from mergeplan.planner.semantics.query.sources import Compound, Full, Sealed, TableSource, Values, rebase_relation
from mergeplan.planner.semantics.spark.spark_functions import is_volatile, multiplies_rows
from mergeplan.planner.semantics.syntax import alias_columns, clause_keys
from mergeplan.planner.semantics.types import is_collated


@dataclass
class FromClause(ABC):
    """A translator of the FROM clauses of one model's queries; each occurrence of a table is a separate source."""

    tables: Mapping[str, TableSource]
    columns: Mapping[str, tuple[str, ...]]
    lower: bool = False  # no name is written with a capital
    _queries: int = 0

    def __post_init__(self) -> None:
        self._ctes = With()
        self._reader = Reader(lambda node, scope: self._translate_query(node, self._ctes, scope), self.lower)

    @abstractmethod
    def _translate_query(self, node: exp.Expr, ctes: With, outer: Scope | None) -> Relation:
        """Return the relation of a query, with these CTEs in scope."""

    def _read_from(self, node: exp.Select, outer: Scope | None) -> tuple[Block, Scope]:
        block = Block()
        scope = Scope(outer=outer, provenance=RowProvenance(node, self._ctes, outer.provenance if outer else None))
        clause = node.args.get("from_")
        if clause is not None:
            alias, relation = self._read_item(clause.this, scope)
            block, scope = relation.block, scope.having(alias, relation.columns)
        for join in node.args.get("joins") or ():
            block, scope = self._add_join(join, block, scope)
        for lateral in node.args.get("laterals") or ():
            block, scope = self._add_lateral(lateral, block, scope, outer=bool(lateral.args.get("outer")))
        return block, scope

    def _read_item(self, node: exp.Expr, scope: Scope) -> tuple[str, Relation]:
        alias, random_calls = node.alias_or_name.lower(), self._reader.random_calls
        if isinstance(node, exp.Table):
            relation = self._read_table(node)
        elif isinstance(node, exp.Values):
            relation = self._read_values(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            relation = self._translate_query(node.this, self._ctes, None)
        else:
            raise Opaque(f"{node.key.upper()} in FROM")
        # RAND() in a subquery is evaluated once per row of the subquery, not once per joined row, so it must not be
        # merged.
        if self._reader.random_calls > random_calls:
            relation = rebase_relation(relation, Sealed(relation.block))
        if names := [column.name.lower() for column in alias_columns(node)]:
            if len(names) != len(relation.columns):
                raise Opaque("aliases for some of the columns")
            relation = replace(relation, columns=dict(zip(names, relation.columns.values(), strict=True)))
        if set(clause_keys(node)) & {"joins", "laterals", "when", "changes", "partition", "version", "hints", "only"}:
            raise Opaque("a table with clauses of its own")
        pivots = node.args.get("pivots") or [node]
        assert scope.provenance is not None
        return pivots[-1].alias.lower() or alias, _apply_sample_and_pivot(node, relation, scope.provenance.trace_item)

    def _read_table(self, node: exp.Table) -> Relation:
        name = node.name.lower()
        if not isinstance(node.this, exp.Identifier):
            raise Opaque("a function in FROM")
        # A name with a schema never refers to a CTE.
        if not node.db and name in self._ctes.queries:
            query, ctes = self._ctes.queries[name]
            return self._translate_query(query, ctes, None)
        full = f"{node.db.lower()}.{name}"
        if full not in self.tables or node.catalog:
            raise Opaque(f"the table `{full}`, whose columns are not known")
        table = replace(self.tables[full])  # a copy: sources are compared by identity, and a self-join has two
        return Relation(Block((table,)), {column: Ref(table, column) for column in self.columns[full]})

    def _read_values(self, node: exp.Values) -> Relation:
        rows = [
            expression.expressions if isinstance(expression, exp.Tuple) else [expression]
            for expression in node.expressions
        ]
        values = tuple(tuple(self._reader.value(cell, Scope()) for cell in row) for row in rows)
        source = Values(values)
        names = [column.name.lower() for column in alias_columns(node)]
        names = names or [f"col{index + 1}" for index in range(len(rows[0]))]
        return Relation(Block((source,)), {name: Ref(source, str(index)) for index, name in enumerate(names)})

    def _add_join(self, join: exp.Join, block: Block, scope: Scope) -> tuple[Block, Scope]:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if join.args.get("using") or (join.method or "").upper() not in ("", "NATURAL") or kind in ("SEMI", "ANTI"):
            raise Opaque("this form of JOIN")
        if isinstance(join.this, exp.Lateral):
            if join.args.get("on") and not (isinstance(join.args["on"], exp.Boolean) and join.args["on"].this):
                raise Opaque("a LATERAL join with a condition")
            return self._add_lateral(join.this, block, scope, outer=side == "LEFT")
        alias, right = self._read_item(join.this, scope)
        if side == "FULL":
            return self._add_full_join(join, block, right, scope, alias)
        joined_scope = scope.having(alias, right.columns)
        condition = join.args.get("on")
        on = rules.filter_predicates(self._reader.value(condition, joined_scope)) if condition else []
        # An inner join is a product with a filter, so the order of joins and ON or WHERE make no difference.
        if not side:
            return block.times(right.block).add_predicates(on), joined_scope
        # A LEFT JOIN appends rows: its condition must be inside, because it decides what is found, not what stays.
        if side == "LEFT":
            sealed = Sealed(right.block.add_predicates(on))
            columns = {name: Ref(sealed, value) for name, value in right.columns.items()}
            return block.add_step(LateralJoin(sealed, outer=True)), scope.having(alias, columns)
        if side == "RIGHT":  # a LEFT JOIN with the sides exchanged
            sealed = Sealed(block.add_predicates(on))
            return right.block.add_step(LateralJoin(sealed, outer=True)), _move_scope(sealed, scope).having(
                alias, right.columns
            )
        raise Opaque(f"a {side} JOIN with LATERAL")

    def _add_full_join(
        self, join: exp.Join, block: Block, right: Relation, scope: Scope, alias: str
    ) -> tuple[Block, Scope]:
        # Both sides may lack a row, so neither block can be merged: a filter inside would not be a filter outside.
        one, two = Sealed(block), Sealed(right.block)
        right_columns: dict[str, Value] = {name: Ref(two, value) for name, value in right.columns.items()}
        joined_scope = _move_scope(one, scope).having(alias, right_columns)
        condition = join.args.get("on")
        full = Full(
            one, two, tuple(rules.filter_predicates(self._reader.value(condition, joined_scope)) if condition else ())
        )
        tables = {
            name: {c: Ref(full, value) for c, value in columns.items()} for name, columns in joined_scope.tables.items()
        }
        return Block((full,)), replace(joined_scope, tables=tables)

    def _add_lateral(self, node: exp.Lateral, block: Block, scope: Scope, *, outer: bool) -> tuple[Block, Scope]:
        alias, inner = node.alias_or_name.lower(), node.this
        names = [column.name.lower() for column in alias_columns(node)]
        if isinstance(inner, (exp.Subquery, exp.Query)):
            relation = self._translate_query(inner, self._ctes, scope)
            sealed = Sealed(relation.block)
            columns: dict[str, Value] = {name: Ref(sealed, value) for name, value in relation.columns.items()}
            if names and len(names) != len(columns):
                raise Opaque("aliases for some of the columns")
            columns = dict(zip(names, columns.values(), strict=True)) if names else columns
            return block.add_step(LateralJoin(sealed, outer)), scope.having(alias, columns)
        if not multiplies_rows(inner) or not names:
            raise Opaque("LATERAL of an unknown function")
        call, parts = call_of(self._reader, inner, scope, names)
        block, outputs = apply_generator(block, call, parts, names, outer=outer)
        return block, scope.having(alias, outputs)


def _move_scope(source: Source, scope: Scope) -> Scope:
    """Return the scope with every column as a column of the source that now contains its tables."""
    tables = {
        alias: {name: Ref(source, value) for name, value in columns.items()} for alias, columns in scope.tables.items()
    }
    return replace(scope, tables=tables)


class _AnyColumn(dict[str, Value]):
    """The columns of a PIVOT: any name, because its outputs are not analysed."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def __missing__(self, name: str) -> Value:
        return Ref(self.source, name)


def _apply_sample_and_pivot(node: exp.Expr, relation: Relation, provenance: Callable[[exp.Expr], Term]) -> Relation:
    if sample := node.args.get("sample"):
        text = Term("text", (sample.sql("spark"),))
        source = Compound("SAMPLE", (relation,), (text, provenance(node)), own_volatile=True)
        names = list(relation.columns)
        relation = Relation(Block((source,)), {name: Ref(source, str(i)) for i, name in enumerate(names)})
    if pivots := node.args.get("pivots"):
        text = Term("text", tuple(map(_pivot_text, pivots)))
        # PIVOT groups by all other columns: with a collation it returns one of several equal spellings.
        own_volatile = is_collated(relation) or any(is_volatile(part) for pivot in pivots for part in pivot.walk())
        source = Compound("PIVOT", (relation,), (text, provenance(node)) if own_volatile else (text,), own_volatile)
        return Relation(Block((source,)), _AnyColumn(source))
    return relation


def settle_using(select: exp.Select) -> None:
    """Replace a column merged by USING or NATURAL by that of the side whose rows all stay, unless a join is FULL."""
    sides = [(join.side or "").upper() for join in select.args.get("joins") or ()]
    for merged in list(select.find_all(exp.Coalesce)):
        if merged.meta.get(WRITTEN) or merged.find_ancestor(exp.Select) is not select or "FULL" in sides:
            continue
        merged.replace(merged.expressions[-1] if "RIGHT" in sides else merged.this)


def _pivot_text(pivot: exp.Expr) -> str:
    if written := pivot.meta.get(WRITTEN):
        return str(written)
    unnamed = pivot.copy()
    unnamed.set("alias", None)
    for column in unnamed.find_all(exp.Column):
        column.set("table", None)
    return unnamed.sql("spark")
