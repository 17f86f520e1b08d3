"""Small questions about parsed SQL."""

from __future__ import annotations

from sqlglot import exp


def alias_columns(node: exp.Expr) -> list[exp.Expr]:
    """The names that `AS t(a, b)` gives to columns."""
    alias = node.args.get("alias")
    return list(alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else []


def given(node: exp.Expr) -> list[str]:
    """The clauses that are there."""
    return [key for key, value in node.args.items() if value]


def has(node: exp.Expr, *keys: str) -> bool:
    """True when one of these clauses is there."""
    return any(node.args.get(key) for key in keys)
