"""The written form of a query, which decides the order of its rows if the query itself does not.

Two queries with the same rows may return them in different orders. An operation that takes rows by their order (LIMIT,
COLLECT_LIST, ROW_NUMBER among ties, ...) therefore has the same result only over a query with the same written form.
Layout, comments, capitals, and the names of aliases and CTEs do not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from mergeplan.planner.semantics.query.algebra import Term
from mergeplan.planner.semantics.syntax import alias_columns

STARRED, LISTED = "starred", "listed"  # marks of `mark_stars` on a SELECT with a star, and on its other outputs
SORTS = ("order", "sort", "cluster", "distribute")
# Clauses that are applied after the values of a SELECT are computed, so that the values do not depend on them.
_AFTERWARDS = ("qualify", "distinct", "kind", *SORTS, "limit", "offset", "windows")  # not what its values are over
_KEYS = "from_ joins laterals where group having qualify distinct kind order sort cluster distribute limit offset hint"


@dataclass(frozen=True)
class With:
    """The CTEs in force: name -> its query and the CTEs in force at its definition."""

    queries: Mapping[str, tuple[exp.Expr, With]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Named:
    """The tables of a query by alias: position in FROM, and the names of their columns if these have positions."""

    tables: Mapping[str, tuple[int, tuple[str, ...] | None]]
    outer: _Named | None = None
    listed: Mapping[str, str] = field(default_factory=dict)  # the query's outputs, if a bare name refers to them


@dataclass(frozen=True)
class RowProvenance:
    """A SELECT or set operation as it is written, with the CTEs in force; `outer` is the query around it."""

    node: exp.Expr
    ctes: With
    outer: RowProvenance | None = None

    @cached_property
    def values_trace(self) -> Term:
        """The written form of the rows that the values of a SELECT are computed over, and the windows beside them."""
        return self._trace_rows(_AFTERWARDS)[0]

    @cached_property
    def rows_trace(self) -> Term:
        """The written form of the rows that it returns, without its own ORDER BY and LIMIT."""
        return self._trace_rows(("order", "limit", "offset"))[0]

    @cached_property
    def if_sorted(self) -> Term:
        """The written form of the rows below; it counts only if they or a view below have an ORDER BY or the like."""
        provenance, sorts = self._trace_rows(_AFTERWARDS)
        return provenance if sorts else replace(provenance, op="way if sorted")

    def trace_item(self, node: exp.Expr) -> Term:
        writer = _Writer()
        text = writer.item(node, self._tables_in_scope(), self.ctes)
        return Term("way", (_digest_text(text), *sorted(writer.tables)))

    def _tables_in_scope(self) -> _Named:
        return _collect_tables(self.node, self.outer._tables_in_scope() if self.outer else None)

    def _trace_rows(self, left_out: tuple[str, ...]) -> tuple[Term, bool]:
        writer = _Writer()
        if isinstance(self.node, exp.Select):
            text = writer.clauses(self.node, self._tables_in_scope(), self.ctes, left_out)
            text += writer.windows(self.node, self._tables_in_scope(), self.ctes)
        else:
            text = writer.query(self.node, None, self.ctes, limits=False)
        return Term("way", (_digest_text(text), *sorted(writer.tables))), writer.sorts > 0


def order_of(node: exp.Expr) -> tuple[Term, bool]:
    """Return the written form of a whole query's rows, with its ORDER BY and LIMIT, and whether it sets an order."""
    writer, ctes = _Writer(), add_ctes(node, With())
    while isinstance(node, exp.Subquery) and not node.args.get("with_"):
        node = node.this
    if isinstance(node, exp.Select):
        named = _collect_tables(node, None)
        text = writer.clauses(node, named, ctes, ()) + writer.windows(node, named, ctes)
    else:
        text = writer.query(node, None, ctes)
    return Term("way", (_digest_text(text), *sorted(writer.tables))), writer.sorts > 0


def add_ctes(node: exp.Expr, ctes: With) -> With:
    clause = node.args.get("with_")
    for cte in clause.expressions if clause else ():
        ctes = With({**ctes.queries, cte.alias.lower(): (cte.this, ctes)})
    return ctes


def mark_stars(tree: exp.Expr) -> None:
    """Mark each SELECT that has a star with its other outputs, before the star is expanded to columns."""
    for select in tree.find_all(exp.Select):
        stars = [output for output in select.expressions if output.is_star]
        if not stars:
            continue
        select.meta[STARRED] = (
            len(select.expressions) - len(stars),
            *(output.sql("spark").lower() for output in stars),
        )
        for output in select.expressions:
            if not output.is_star:
                output.unalias().meta[LISTED] = True


@dataclass
class _Writer:
    """A writer of queries that also records the tables and the orders in them."""

    tables: set[str] = field(default_factory=set)
    sorts: int = 0
    _known: dict[int, str] = field(default_factory=dict)

    def query(self, node: exp.Expr, outer: _Named | None, ctes: With, *, limits: bool = True) -> str:
        if isinstance(node, exp.Subquery):
            inside = add_ctes(node, ctes)
            arguments = self._write_arguments(node, outer, inside, ("this", "with_", "alias"))
            return self.query(node.this, outer, inside, limits=limits) + arguments
        # A CTE is written once per use: without the cache, nested ones would grow exponentially.
        if outer is None and limits and id(node) in self._known:
            return self._known[id(node)]
        ctes, named = add_ctes(node, ctes), _collect_tables(node, outer)
        if isinstance(node, exp.Select):
            text = f"{self.clauses(node, named, ctes, ())} lists {self._write_outputs(node, named, ctes)}"
        elif isinstance(node, exp.SetOperation):
            sides = [self.query(side, outer, ctes) for side in (node.this, node.expression)]
            left_out = ("this", "expression", "with_", *(() if limits else ("order", "limit", "offset")))
            self.sorts += bool(node.args.get("order")) and limits
            arguments = self._write_arguments(node, named, ctes, left_out)
            arguments += f" of {[name.lower() for name in node.named_selects]}" if "bare:" in arguments else ""
            text = f"{type(node).__name__}({'; '.join(sides)}){arguments}"
        else:
            text = self._write_node(node, named, ctes)
        if outer is None and limits:
            self._known[id(node)] = text = _digest_text(text)
        return text

    def clauses(self, node: exp.Expr, named: _Named, ctes: With, left_out: tuple[str, ...]) -> str:
        """Return the text of a SELECT's clauses, with its outputs only if a bare name may refer to them."""
        clause_texts = []
        for key in (key for key in _KEYS.split() if key not in left_out and node.args.get(key)):
            self.sorts += key in SORTS
            argument = node.args[key]
            around = replace(named, listed=self._outputs_by_name(node, named, ctes)) if key in SORTS else named
            texts = [self.item(part, around, ctes) for part in (argument if isinstance(argument, list) else [argument])]
            clause_texts.append(f"{key}({', '.join(texts)})")
        text = " ".join(clause_texts)
        return f"{text} of {self._write_outputs(node, named, ctes, names=True)}" if "bare:" in text else text

    def windows(self, node: exp.Expr, named: _Named, ctes: With) -> str:
        """Return the windows and DISTINCT aggregates of a SELECT, because they change the order of rows for others."""
        nodes = [
            window
            for output in node.args.get("expressions") or ()
            for window in output.find_all(exp.Window, exp.Distinct)
            if window.find_ancestor(exp.Select) is node
        ]
        # Each distinct window adds a sort to Spark's plan, and the rows arrive at the next one in that order.
        texts = dict.fromkeys(self._write_node(window, named, ctes) for window in nodes)
        return f" beside {'; '.join(texts)}" if len(texts) > 1 else ""

    def item(self, node: exp.Expr, named: _Named | None, ctes: With) -> str:
        """Return the text of an item of FROM or of any other clause; its position represents its alias."""
        match node:
            case exp.From():
                return self.item(node.this, named, ctes)
            case exp.Table():
                return self._write_table(node, named, ctes)
            case exp.Subquery() | exp.Values():
                outer = named if isinstance(node.parent, exp.Lateral) else None
                inner_query = node.this if isinstance(node, exp.Subquery) else None
                inner = add_ctes(node, ctes)
                text = self.query(inner_query, outer, inner) if isinstance(inner_query, exp.Query) else ""
                skipped = ("alias", "with_", *(("this",) if text else ()))
                return f"{type(node).__name__}({text}){self._write_arguments(node, named, inner, skipped)}"
            case exp.Join():
                text = self.item(node.this, named, ctes)
                return f"Join({text}){self._write_arguments(node, named, ctes, ('this',))}"
            case exp.Lateral():
                text = self._write_node(node.this, named, ctes)
                return f"Lateral({text}){self._write_arguments(node, named, ctes, ('this', 'alias'))}"
        return self._write_node(node, named, ctes)

    def _write_table(self, node: exp.Table, named: _Named | None, ctes: With) -> str:
        arguments = self._write_arguments(node, named, ctes, ("this", "db", "catalog", "alias"))
        name = node.name.lower()
        if not node.db and name in ctes.queries:
            query, inside = ctes.queries[name]
            return f"Subquery({self.query(query, None, inside)}){arguments}"
        if not isinstance(node.this, exp.Identifier):
            return f"Table({self._write_node(node.this, named, ctes)}){arguments}"
        full = f"{node.db}.{name}".lower()
        self.tables.add(full)
        return f"Table({full}){arguments}"

    def _write_outputs(self, node: exp.Expr, named: _Named, ctes: With, *, names: bool = False) -> str:
        outputs = list(node.args.get("expressions") or ())
        star: tuple[str, ...] = ()
        if starred := node.meta.get(STARRED):
            listed = [output for output in outputs if output.unalias().meta.get(LISTED)]
            outputs, star = (listed, starred[1:]) if len(listed) == starred[0] else (outputs, ("*",))
        texts = [self._write_node(output.unalias(), named, ctes) for output in outputs]
        if names or star or any("bare:" in text for text in texts):
            texts = [f"{text} as {output.alias_or_name.lower()}" for text, output in zip(texts, outputs, strict=True)]
        return f"[{', '.join((*texts, *star))}]"

    def _outputs_by_name(self, node: exp.Expr, named: _Named, ctes: With) -> dict[str, str]:
        outputs = node.args.get("expressions") or ()
        return {output.alias_or_name.lower(): self._write_node(output.unalias(), named, ctes) for output in outputs}

    def _write_node(self, node: exp.Expr, named: _Named | None, ctes: With) -> str:
        match node:
            case exp.Paren():
                return self._write_node(node.this, named, ctes)
            case exp.Subquery() if isinstance(node.this, exp.Query) and not isinstance(
                node.parent, (exp.From, exp.Join)
            ):
                return f"({self.query(node, named, ctes)})"
            case exp.Query() if isinstance(node, (exp.Select, exp.SetOperation)):
                return f"({self.query(node, named, ctes)})"
            case exp.Table() | exp.Subquery() | exp.Values() | exp.Join() | exp.Lateral():
                return self.item(node, named, ctes)
            case exp.Column() if isinstance(node.this, exp.Identifier):
                return _column_text(node, named)
            case exp.Identifier():
                return node.name.lower()
            case exp.Literal():
                return repr((bool(node.is_string), node.name))
            case exp.Var() if isinstance(node.parent, exp.Ordered):
                return "bare:all"  # ORDER BY ALL
            case exp.DataType() | exp.Var():
                return node.sql("spark").lower()
        return f"{type(node).__name__}({self._write_arguments(node, named, ctes, ())})"

    def _write_arguments(self, node: exp.Expr, named: _Named | None, ctes: With, left_out: tuple[str, ...]) -> str:
        texts = []
        for key, argument in sorted(node.args.items()):
            if key in left_out or argument is None or argument is False or argument == []:
                continue
            elements = argument if isinstance(argument, list) else [argument]
            parts = [
                self._write_node(one, named, ctes) if isinstance(one, exp.Expr) else repr(one).lower()
                for one in elements
            ]
            texts.append(f"{key}={', '.join(parts)}")
        return f"{{{'; '.join(texts)}}}" if texts else ""


def _column_text(node: exp.Column, named: _Named | None) -> str:
    # By position of the table, and by the number of queries between: aliases do not matter, but the order in FROM does.
    name, table, hops = node.name.lower(), node.table.lower(), 0
    if not table:
        return named.listed[name] if named and name in named.listed else f"bare:{name}"
    while named is not None:
        if table in named.tables:
            index, columns = named.tables[table]
            place = str(columns.index(name)) if columns and name in columns else f"'{name}'"
            return f"column({hops}.{index}.{place})"
        named, hops = named.outer, hops + 1
    return f"column({table}.{name})"


def _collect_tables(node: exp.Expr, outer: _Named | None) -> _Named:
    if not isinstance(node, exp.Select):
        return _Named({}, outer)
    tables: dict[str, tuple[int, tuple[str, ...] | None]] = {}
    clause = node.args.get("from_")
    items = [clause.this] if clause else []
    items += [*(join.this for join in node.args.get("joins") or ()), *(node.args.get("laterals") or ())]
    for index, item in enumerate(items):
        pivots = item.args.get("pivots") or [item]
        tables.setdefault((pivots[-1].alias or item.alias_or_name).lower(), (index, _item_columns(item)))
    return _Named(tables, outer)


def _item_columns(item: exp.Expr) -> tuple[str, ...] | None:
    """Return the names of an item's columns by position, or None if they are known by name only."""
    if names := alias_columns(item):
        return tuple(column.name.lower() for column in names)
    query = item.this if isinstance(item, exp.Subquery) and not item.args.get("pivots") else None
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this
    if not isinstance(query, exp.Select) or STARRED in query.meta:
        return None
    return tuple(name.lower() for name in query.named_selects)


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
