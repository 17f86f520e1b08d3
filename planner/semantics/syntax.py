"""Helpers for sqlglot's expression trees."""

from sqlglot import exp


def alias_columns(node: exp.Expr) -> list[exp.Expr]:
    """Return the names that `AS t(a, b)` gives to columns."""
    alias = node.args.get("alias")
    return list(alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else []


def clause_keys(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def has_clause(node: exp.Expr, *keys: str) -> bool:
    return any(node.args.get(key) for key in keys)


def names_fields(body: exp.Expr) -> bool:
    """Return True if a variable of a lambda names a field of a struct: `STRUCT(x)`, `(x, 1)`, `ARRAYS_ZIP(x)`."""
    rows = (exp.Tuple, exp.ArraysZip, exp.Anonymous)
    return any(
        isinstance(name.parent, rows)
        or (isinstance(name.parent, exp.PropertyEQ) and name.arg_key == "expression" and name.parent.name == name.name)
        for name in body.find_all(exp.Identifier)
    )


def is_star_of_count(star: exp.Star) -> bool:
    """Return True for the `*` of COUNT(*), which reads no column.

    `COUNT(* EXCEPT (a))` and `COUNT(*, 1)` count rows without a NULL.
    """
    count = star.parent
    return isinstance(count, exp.Count) and not count.expressions and not has_clause(star, "except_")
