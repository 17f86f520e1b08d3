"""Small helpers with which the edits pick and replace parts of a query."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import sqlglot
from sqlglot import exp

from mergeplan.planner.parsing.macros.expand import spark_tree
from tests.planner.generating.data import Columns

T = TypeVar("T")
Node = TypeVar("Node", bound=exp.Expr)


@dataclass(frozen=True)
class Edited:
    """The query under the knife: chance, the tree, and the columns of the tables around it."""

    rng: random.Random
    tree: exp.Expr
    columns: dict[str, Columns]

    def pick(self, choices: Iterable[T]) -> T | None:
        """One of them, or None when there is none."""
        listed = list(choices)
        return self.rng.choice(listed) if listed else None

    def any(self, *kinds: type[Node]) -> Node | None:
        """One node of these kinds."""
        return self.pick(self.tree.find_all(*kinds))

    def selects(self, clause: str = "") -> list[exp.Select]:
        """The SELECTs that have a clause."""
        return [select for select in self.tree.find_all(exp.Select) if not clause or select.args.get(clause)]

    def tables(self) -> list[exp.Table]:
        return [table for table in self.tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]

    def outputs(self) -> list[tuple[exp.Select, exp.Expr]]:
        """Every named output of every SELECT that is more than `SELECT 1`."""
        return [
            (select, output)
            for select in self.selects()
            for output in select.expressions
            if output.alias_or_name and not output.find(exp.Star)
        ]


def parse(sql: str) -> exp.Expr:
    """An expression."""
    return sqlglot.parse_one(sql, dialect="spark")


def query_of(sql: str) -> exp.Expr:
    return spark_tree(sql).copy()


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """What AND joins."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    return [*conjuncts(node.left), *conjuncts(node.right)] if isinstance(node, exp.And) else [node] if node else []


def conjoin(parts: Sequence[exp.Expr]) -> exp.Expr:
    """The parts with AND between them, TRUE for none."""
    operands = [exp.Paren(this=part.copy()) if isinstance(part, exp.Or) else part.copy() for part in parts]
    return exp.and_(*operands, copy=False) if operands else exp.true()


def set_where(select: exp.Expr, parts: Sequence[exp.Expr]) -> None:
    """Give a SELECT this WHERE, or none."""
    select.set("where", exp.Where(this=conjoin(parts)) if parts else None)


def add_where(select: exp.Expr, part: exp.Expr) -> None:
    where = select.args.get("where")
    set_where(select, [*conjuncts(where.this if where else None), part])


def is_plain(select: exp.Expr) -> bool:
    """True for a SELECT that neither folds, nor ranks, nor cuts its rows."""
    clauses = ("group", "having", "distinct", "limit", "qualify", "windows")
    return (
        isinstance(select, exp.Select)
        and not any(select.args.get(clause) for clause in clauses)
        and not any(output.find(exp.AggFunc, exp.Window, exp.UDTF, exp.Explode) for output in select.expressions)
    )


def kind_of(join: exp.Join) -> str:
    """INNER, LEFT, ... CROSS, COMMA, NATURAL, USING."""
    if join.args.get("method"):
        return str(join.args["method"])
    if join.args.get("using"):
        return "USING"
    if join.side or (join.kind and join.kind not in ("INNER", "CROSS")):
        return f"{join.side} {join.kind}".strip()
    return "INNER" if join.args.get("on") else join.kind or "COMMA"


def clashing(edited: Edited, name: str) -> bool:
    """True when a name stands anywhere in the query."""
    return any(identifier.name.lower() == name.lower() for identifier in edited.tree.find_all(exp.Identifier))
