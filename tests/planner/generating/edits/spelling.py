"""Edits of how something is spelled: the case of names, brackets around subqueries, and those of functions without
arguments. Some of them say the same to Spark and some do not, which a parser may not know."""

from __future__ import annotations

from sqlglot import exp

from tests.planner.generating.edits.trees import Edited

KEYWORDS: dict[str, type[exp.Expr]] = {"current_user": exp.CurrentUser, "current_date": exp.CurrentDate}


def _other_case(name: str) -> str:
    return name.upper() if name == name.lower() else name.lower()


def lambda_recased(e: Edited) -> bool:
    """A lambda's variable is declared in another case than it is used in."""
    node = e.any(exp.Lambda)
    variable = e.pick(node.expressions) if node else None
    if variable is None:
        return False
    variable.replace(exp.to_identifier(_other_case(variable.name)))
    return True


def lambda_capturing(e: Edited) -> bool:
    """A lambda's variable takes, in another case, the name of a column that its body reads."""
    node = e.pick(n for n in e.tree.find_all(exp.Lambda) if n.this.find(exp.Column))
    column = e.pick(node.this.find_all(exp.Column)) if node else None
    variable = e.pick(node.expressions) if node else None
    if node is None or column is None or variable is None:
        return False
    name = _other_case(column.name)
    for use in [word for word in node.find_all(exp.Identifier) if word.name.lower() == variable.name.lower()]:
        use.replace(exp.to_identifier(name))
    return True


def keyword_called(e: Edited) -> bool:
    """`current_user` becomes `current_user()`, or the other way round."""
    bare = [c for c in e.tree.find_all(exp.Column) if c.name.lower() in KEYWORDS and isinstance(c.this, exp.Identifier)]
    called = list(e.tree.find_all(*KEYWORDS.values()))
    node = e.pick([*bare, *called])
    if node is None:
        return False
    if isinstance(node, exp.Column):
        new: exp.Expr = KEYWORDS[node.name.lower()]()
        is_output = isinstance(node.parent, exp.Select)
        node.replace(exp.alias_(new, node.name) if is_output else new)
        return True
    node.replace(exp.column(next(name for name, kind in KEYWORDS.items() if isinstance(node, kind))))
    return True


def subquery_bracketed(e: Edited) -> bool:
    """`IN (SELECT ...)` becomes `IN ((SELECT ...))`, or the other way round."""
    listed = [
        n for n in e.tree.find_all(exp.In) if len(n.expressions) == 1 and isinstance(n.expressions[0], exp.Subquery)
    ]
    node = e.pick([*(n for n in e.tree.find_all(exp.In) if n.args.get("query")), *listed])
    if node is None:
        return False
    if node in listed:
        node.set("query", node.expressions[0].copy())
        node.set("expressions", None)
        return True
    node.set("expressions", [exp.Subquery(this=node.args["query"].this.copy())])
    node.set("query", None)
    return True


def column_recased(e: Edited) -> bool:
    """A column is read in another case, which shows where a struct is made of it."""
    named = (c for c in e.tree.find_all(exp.Column) if isinstance(c.this, exp.Identifier))
    column = e.pick(c for c in named if not c.name.startswith("@"))  # a macro's name has no other case
    if column is None:
        return False
    column.this.replace(exp.to_identifier(_other_case(column.name)))
    return True


def output_recased(e: Edited) -> bool:
    """An output is named in another case, which shows where the query is embedded."""
    pair = e.pick((s, o) for s, o in e.outputs() if isinstance(o, (exp.Alias, exp.Column)))
    if pair is None:
        return False
    _, output = pair
    output.replace(exp.alias_(output.unalias().copy(), _other_case(output.alias_or_name)))
    return True


def field_recased(e: Edited) -> bool:
    """A field of a struct is named in another case."""
    fields = [
        f for s in e.tree.find_all(exp.Struct) for f in s.expressions if isinstance(f, (exp.Alias, exp.PropertyEQ))
    ]
    field = e.pick(fields)
    if field is None:
        return False
    key = "alias" if isinstance(field, exp.Alias) else "this"
    field.set(key, exp.to_identifier(_other_case(field.args[key].name)))
    return True


EDITS = (
    lambda_recased, lambda_capturing, keyword_called, keyword_called, subquery_bracketed, subquery_bracketed,
    column_recased, output_recased, field_recased,
)  # fmt: skip
