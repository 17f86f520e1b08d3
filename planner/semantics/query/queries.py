"""Translate a qualified SQL query into a relation: SELECT with all its clauses, set operations, LIMIT."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.semantics.expressions import has_op, place_windows
from mergeplan.planner.semantics.query import rewrites as rules
from mergeplan.planner.semantics.query.aggregation import (
    Grouping,
    as_value,
    distinct_relation,
    group_block,
    group_keys,
    has_aggregate,
)
from mergeplan.planner.semantics.query.algebra import Block, LateralJoin, Opaque, Ref, Relation, Term, Value
from mergeplan.planner.semantics.query.generators import read_generator, without_volatility
from mergeplan.planner.semantics.query.joins import FromClause, settle_using
from mergeplan.planner.semantics.query.row_order import RowProvenance, With
from mergeplan.planner.semantics.query.scope import Scope
from mergeplan.planner.semantics.query.set_operations import apply_set_operation, push_filter, tells_groups_apart
from mergeplan.planner.semantics.query.sources import Generated, Limit
from mergeplan.planner.semantics.spark.spark_functions import is_unknown, multiplies_rows
from mergeplan.planner.semantics.syntax import clause_keys, has_clause

_KNOWN_CLAUSES = frozenset(
    """expressions from_ joins laterals where group having qualify windows distinct order limit offset with_ hint
    sort cluster distribute kind""".split()
)
# CTEs are expanded wherever they are used, so nested ones can grow exponentially.
_MAX_QUERIES = 1000


@dataclass
class Query(FromClause):
    """The translator of one model's query."""

    def relation(self, tree: exp.Expr) -> Relation:
        """Return the relation of the whole query; raise Opaque if it cannot be translated."""
        return self._translate_query(tree, With(), None)

    def _translate_query(self, node: exp.Expr, ctes: With, outer: Scope | None) -> Relation:
        self._queries += 1
        if self._queries > _MAX_QUERIES:
            raise Opaque("CTEs that expand to that many queries")
        # A CTE is expanded with the CTEs of the place where it was defined, not of where it is used.
        outer_ctes, self._ctes = self._ctes, self._read_ctes(node, ctes)
        try:
            match node:
                case exp.Subquery():
                    if set(clause_keys(node)) - {"this", "with_", "alias"}:
                        raise Opaque("a subquery with clauses of its own")
                    return self._translate_query(node.this, self._ctes, outer)
                case exp.Select():
                    return self._translate_select(node, outer)
                case exp.SetOperation():
                    return self._set_operation(node, outer)
            raise Opaque(f"{node.key.upper()} in place of a query")
        finally:
            self._ctes = outer_ctes

    def _read_ctes(self, node: exp.Expr, ctes: With) -> With:
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

    def _translate_select(self, node: exp.Select, outer: Scope | None) -> Relation:
        if odd := set(clause_keys(node)) - _KNOWN_CLAUSES:
            raise Opaque(f"a SELECT with {', '.join(sorted(odd)).upper().replace('_', ' ')}")
        if node.args.get("kind") or (
            has_clause(node, "sort", "cluster", "distribute") and has_clause(node, "limit", "offset")
        ):
            raise Opaque("this form of SELECT")
        block, scope = self._read_from(node, outer)
        settle_using(node)
        if (whole := self._only_star(node, block, scope)) is not None:
            return whole
        windows = {window.name.lower(): window for window in node.args.get("windows") or ()}
        if where := node.args.get("where"):
            block, scope = push_filter(
                block.add_predicates(rules.filter_predicates(self._reader.value(where.this, scope))), scope
            )
        # The clauses in Spark's order of evaluation: GROUP BY, HAVING, windows, QUALIFY, DISTINCT, LIMIT.
        relation, order = self._project_outputs(node, block, scope, windows)
        if once := node.args.get("distinct"):
            if once.args.get("on"):
                raise Opaque("DISTINCT ON")
            relation, order = (
                relation if tells_groups_apart(relation) else distinct_relation(relation, _require_provenance(scope)),
                [],
            )
        # Without LIMIT or OFFSET, ORDER BY is dropped: a table has no order.
        if has_clause(node, "limit", "offset"):
            if node.args.get("distinct") and node.args.get("order"):
                raise Opaque("SELECT DISTINCT with ORDER BY and LIMIT")
            return self._apply_limit(node, relation, order, _require_provenance(scope))
        return relation

    def _only_star(self, node: exp.Select, block: Block, scope: Scope) -> Relation | None:
        """Return the relation of a star over unnamed columns (PIVOT), None without a star; raise Opaque for others."""
        if not any(isinstance(output, exp.Star) or output.is_star for output in node.selects):
            return None
        if len(node.selects) > 1 or len(scope.tables) > 1 or set(clause_keys(node)) - {"expressions", "from_"}:
            raise Opaque("a star over unknown columns")
        (columns,) = scope.tables.values()
        return Relation(block, columns)

    def _project_outputs(
        self, node: exp.Select, block: Block, scope: Scope, windows: Mapping[str, exp.Expr]
    ) -> tuple[Relation, list[Value]]:
        raw = self._raw_outputs(node, scope, windows)
        values = {name: value for name, value in raw.items() if not isinstance(value, exp.Expr)}
        order = self._read_order(node, scope, windows, values) if has_clause(node, "limit", "offset") else []
        # Values are read over the ungrouped rows and lifted afterwards: an output may be the key of its own GROUP BY.
        lift, block = self._apply_grouping(node, block, scope, windows, values)

        def final(value: Value) -> Value:
            return as_value(place_windows(lift.lift_value(value) if lift else value, windowed))

        # Windows see the rows after GROUP BY and before QUALIFY and the generators of this SELECT.
        windowed = block
        columns: dict[str, Value] = {}
        for name, value in raw.items():
            if isinstance(value, exp.Expr):
                if node.args.get("qualify") or any(has_op(output, "window") for output in values.values()):
                    raise Opaque("a generator beside a window")
                block, made = read_generator(self._reader, value, scope, block, lift)
                columns |= made
            else:
                columns[name] = final(value)
        if qualify := node.args.get("qualify"):
            conditions = rules.filter_predicates(self._reader.value(qualify.this, scope, windows))
            block = block.add_predicates([final(condition) for condition in conditions])
        block = self._join_unknown_functions(node, block, columns)
        return Relation(block, columns), [final(value) for value in order]

    def _raw_outputs(
        self, node: exp.Select, scope: Scope, windows: Mapping[str, exp.Expr]
    ) -> dict[str, Value | exp.Expr]:
        raw: dict[str, Value | exp.Expr] = {}
        for output in node.selects:
            name = output.alias_or_name.lower()
            name = f"{name} {len(raw)}" if name in raw else name  # an ambiguous name cannot be referred to
            if isinstance(output, exp.Aliases):
                raw[f"{len(raw)} aliases"] = output
            elif not name:
                raise Opaque("an output without a name")
            elif multiplies_rows(output.unalias()):
                raw[name] = output
            else:
                raw[name] = rules.output_value(self._reader.value(output.unalias(), scope, windows))
        return raw

    def _apply_grouping(
        self,
        node: exp.Select,
        block: Block,
        scope: Scope,
        windows: Mapping[str, exp.Expr],
        outputs: Mapping[str, Value],
    ) -> tuple[Grouping | None, Block]:
        """Return the grouping and the block after GROUP BY and HAVING; an aggregate alone makes one group."""
        having = node.args.get("having")
        condition = self._reader.value(having.this, scope, windows) if having else None
        if node.args.get("group") or any(map(has_aggregate, (*outputs.values(), *([condition] if condition else [])))):
            keys, sets = group_keys(self._reader, node, scope, outputs)
            return group_block(block, keys, sets, condition, _require_provenance(scope))
        if condition is not None:
            raise Opaque("HAVING without GROUP BY")  # Spark makes it a global aggregate or a WHERE, by a legacy setting
        return None, block

    def _join_unknown_functions(self, node: exp.Select, block: Block, columns: Mapping[str, Value]) -> Block:
        """Return the block with unknown functions as lateral joins too, because they may generate rows."""
        for output in node.selects:
            name = output.alias_or_name.lower()
            if name in columns and any(is_unknown(function) for function in output.find_all(exp.Func)):
                block = block.add_step(LateralJoin(Generated(Term("maybe rows", (without_volatility(columns[name]),)))))
        return block

    def _read_order(
        self, node: exp.Expr, scope: Scope, windows: Mapping[str, exp.Expr], outputs: Mapping[str, Value]
    ) -> list[Value]:
        order = node.args.get("order")
        values: list[Value] = []
        for key in order.expressions if order else ():
            bare = isinstance(key.this, exp.Column) and not key.this.table  # an output's alias takes precedence
            if bare and key.this.name.lower() in outputs:
                value = outputs[key.this.name.lower()]
            elif isinstance(key.this, exp.Literal):
                raise Opaque("ORDER BY a number")
            elif isinstance(key.this, exp.Var):
                # a column that is called `all` takes precedence over ORDER BY ALL
                names = {*outputs, *(name for columns in scope.tables.values() for name in columns)}
                if "all" in names or len(outputs) < len(node.selects if isinstance(node, exp.Query) else ()):
                    raise Opaque("ORDER BY ALL beside a column `all` or a generator")
                values += [_order_term(key, value) for value in outputs.values()]
                continue
            else:
                value = self._reader.value(key.this, scope, windows)
            values.append(_order_term(key, value))
        return values

    def _apply_limit(
        self, node: exp.Expr, relation: Relation, order: list[Value], provenance: RowProvenance
    ) -> Relation:
        counts = []
        for key in ("limit", "offset"):
            clause = node.args.get(key)
            if clause is not None and not isinstance(clause, (exp.Limit, exp.Offset)):
                raise Opaque(f"{clause.key.upper()} with an expression")
            counts.append(self._reader.value(clause.expression, Scope()) if clause else Term("none"))
        limit = Limit(relation.block, tuple(order), tuple(counts), provenance.rows_trace)
        return Relation(Block((limit,)), {name: Ref(limit, value) for name, value in relation.columns.items()})

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> Relation:
        allowed_keys = {"this", "expression", "distinct", "order", "limit", "offset", "with_"}
        if set(clause_keys(node)) - allowed_keys:
            raise Opaque("this form of a set operation")
        left_query = self._translate_query(node.this, self._ctes, outer)
        right_query = self._translate_query(node.expression, self._ctes, outer)
        if len(left_query.columns) != len(right_query.columns):
            raise Opaque("a set operation over different numbers of columns")
        # The order of branches matters only to what takes rows by their order, which the written form represents.
        provenance = RowProvenance(node, self._ctes, outer.provenance if outer else None)
        relation = apply_set_operation(node, left_query, right_query, provenance)
        if not has_clause(node, "limit", "offset"):
            return relation
        order = self._read_order(node, Scope(), {}, relation.columns)
        return self._apply_limit(node, relation, order, provenance)


def _order_term(key: exp.Expr, value: Value) -> Value:
    return Term("ordered", (str(bool(key.args.get("desc"))), str(key.args.get("nulls_first")), value))


def _require_provenance(scope: Scope) -> RowProvenance:
    assert scope.provenance is not None
    return scope.provenance
