"""The clauses of a query as they are written, by keyword, to find those in which two texts differ."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of

SELECT = "SELECT"
# clause of `clauses` -> the keywords under which it may be written
KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "WHERE": ("WHERE", "QUALIFY", "HAVING", "ON", "JOIN"),
    "ON or WHERE": ("ON", "WHERE", "QUALIFY", "HAVING", "JOIN"),
    "HAVING": ("HAVING", "WHERE", "QUALIFY"),
    "GROUP BY": ("GROUP BY", "DISTINCT", "UNION"),
    "DISTINCT": ("DISTINCT", "UNION", "GROUP BY"),
    "LIMIT": ("LIMIT", "OFFSET"),
    "ORDER BY": ("ORDER BY",),
    "LEFT JOIN or LATERAL": ("LATERAL VIEW", "JOIN", "ON", "FROM"),
    "FROM": (
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "PIVOT",
        "UNPIVOT",
        "TABLESAMPLE",
        "VALUES",
        "JOIN",
        "ON",
        "FROM",
        "WHERE",
    ),
}
# clauses that depend on values that a SELECT below them computes
DEPENDENT = frozenset(KEYWORDS["ON or WHERE"] + KEYWORDS["DISTINCT"] + KEYWORDS["FROM"][:5] + ("ORDER BY",)) - {"JOIN"}
_NODES: Mapping[type[exp.Expr], str] = {
    exp.Where: "WHERE",
    exp.Having: "HAVING",
    exp.Qualify: "QUALIFY",
    exp.Group: "GROUP BY",
    exp.Distinct: "DISTINCT",
    exp.Limit: "LIMIT",
    exp.Offset: "OFFSET",
    exp.Order: "ORDER BY",
    exp.Values: "VALUES",
    exp.TableSample: "TABLESAMPLE",
}


def find_changed_clauses(labels: Iterable[str], before: str, after: str) -> tuple[str, ...]:
    """Return the keywords of changed clauses whose text differs, or else of any clauses whose text does."""
    old, new = clause_texts(before), clause_texts(after)
    keywords = list(dict.fromkeys(keyword for label in labels for keyword in KEYWORDS.get(label, ())))
    written = [keyword for keyword in dict.fromkeys((*old, *new)) if keyword != SELECT]
    differ = [keyword for keyword in written if old.get(keyword) != new.get(keyword)]
    return tuple(keyword for keyword in keywords if keyword in differ) or tuple(differ)


def dependent_clause(labels: Iterable[str], sql: str) -> str:
    """Return the keyword of one of these clauses that depends on values of SELECT, or ''."""
    written = clause_texts(sql)
    keywords = (keyword for label in labels for keyword in KEYWORDS.get(label, ()) if label != "LEFT JOIN or LATERAL")
    return next((keyword for keyword in keywords if keyword in written and keyword in DEPENDENT), "")


@lru_cache(maxsize=1024)
def clause_texts(sql: str) -> Mapping[str, tuple[str, ...]]:
    """Return the texts of each clause by keyword, anywhere in the query; {} for a text that cannot be parsed."""
    try:
        tree = tree_of(sql)
    except FAILURES:
        return {}
    texts_by_keyword: dict[str, list[str]] = {}
    for node in tree.walk():
        for keyword, text in _node_clauses(node):
            texts_by_keyword.setdefault(keyword, []).append(text)
    return {keyword: tuple(sorted(texts)) for keyword, texts in texts_by_keyword.items()}


def _node_clauses(node: exp.Expr) -> list[tuple[str, str]]:
    if keyword := _NODES.get(type(node)):
        return [(keyword, _clause_text(node))]
    if isinstance(node, exp.Select):
        return [(SELECT, ", ".join(map(_clause_text, node.expressions)))]
    if isinstance(node, exp.Table):
        return [("FROM", _table_names(node))]
    if isinstance(node, exp.Join):
        on = node.args.get("on") or node.args.get("using")
        kind = " ".join(filter(None, (node.method, node.side, node.kind)))
        return [("JOIN", f"{kind} {_clause_text(node.this)}"), *([("ON", _clause_text(on))] if on else [])]
    if isinstance(node, exp.SetOperation):
        keyword = type(node).__name__.upper()
        branches = " | ".join(_table_names(branch) for branch in (node.this, node.expression))
        return [(keyword, f"{'DISTINCT' if node.args.get('distinct') else 'ALL'} {branches}")]
    if isinstance(node, exp.Lateral):
        return [("LATERAL VIEW", _clause_text(node))]
    if isinstance(node, exp.Pivot):
        return [("UNPIVOT" if node.args.get("unpivot") else "PIVOT", _clause_text(node))]
    return []


def _table_names(node: exp.Expr) -> str:
    return ", ".join(".".join(part.name.lower() for part in table.parts) for table in node.find_all(exp.Table))


def _clause_text(node: object) -> str:
    if isinstance(node, list):
        return ", ".join(map(_clause_text, node))
    return node.sql(dialect="spark", comments=False) if isinstance(node, exp.Expr) else str(node)
