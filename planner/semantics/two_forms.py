"""Queries of two forms: the first fills a table without rows, and the later one each run from then on."""

import re

_FILLED = r"EXISTS ?\(SELECT 1 FROM (?P<{0}>[^()]+)\)"
_FORMS = re.compile(
    rf"SELECT \* FROM \((?P<first>.*)\) AS first_run WHERE NOT {_FILLED.format('own')}\s+"
    rf"UNION ALL SELECT \* FROM \((?P<later>.*)\) AS later_run WHERE {_FILLED.format('same')}",
    re.DOTALL,
)
FORMS = {"first_run": "a first run", "later_run": "later runs"}


def join_forms(first: str, later: str, table: str) -> str:
    """Return both forms of a model as one query, so that an edit of either is an edit of the model."""
    filled = f"EXISTS (SELECT 1 FROM {table})"
    return (
        f"SELECT * FROM (\n{first}\n) AS first_run WHERE NOT {filled}\n"
        f"UNION ALL\nSELECT * FROM (\n{later}\n) AS later_run WHERE {filled}"
    )


def split_forms(sql: str, table: str) -> tuple[str, str] | None:
    """Return the first and the later form of a model's query, as sqlglot writes it; None for any other query.

    A text whose halves are queries has the two names outside of its literals.
    """
    match = _FORMS.fullmatch(sql) if sql.count("first_run") == sql.count("later_run") == 1 else None
    if match is None or {match["own"].replace("`", ""), match["same"].replace("`", "")} != {table}:
        return None
    return match["first"], match["later"]
