"""Queries that take rows by the order in which they come: from a subquery or a CTE that sorts, or that does not."""

from __future__ import annotations

from collections.abc import Callable

from .data import Columns
from .expressions import GROUPABLE, Scope
from .sources import Made, Relations, make_from

SORTS = (
    "ORDER BY {0} DESC", "ORDER BY {0}, {1}", "ORDER BY {1} NULLS LAST", "SORT BY {0} DESC",
    "DISTRIBUTE BY {1} SORT BY {0}", "CLUSTER BY {0}", "ORDER BY {1} DESC LIMIT 5", "",
)  # fmt: skip
FOLDED = (
    ("TO_JSON(COLLECT_LIST({0}))", "s"), ("TO_JSON(ARRAY_AGG({0}))", "s"), ("STRING(FIRST({0}))", "s"),
    ("STRING(LAST({0}))", "s"), ("STRING(FIRST_VALUE({0}, TRUE))", "s"), ("STRING(ANY_VALUE({0}))", "s"),
    ("STRING(MAX_BY({0}, 1))", "s"), ("LISTAGG(STRING({0}), ',')", "s"), ("TO_JSON(COLLECT_SET({0}))", "s"),
)  # fmt: skip
VALUED = (
    ("ROW_NUMBER() OVER (ORDER BY NULL)", "i"), ("CAST(MONOTONICALLY_INCREASING_ID() AS INT)", "i"),
    ("STRING(LAG({0}) OVER (ORDER BY 1))", "s"), ("NTILE(2) OVER (PARTITION BY 1 ORDER BY NULL)", "i"),
    ("SUM(1) OVER (ORDER BY NULL ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)", "n"),
)  # fmt: skip


def order_taken(scope: Scope, relations: Relations, depth: int, maker: Callable[..., Made]) -> tuple[str, Columns]:
    """A query over another one whose rows it takes as they come."""
    rng = scope.rng
    text, inner = make_from(scope, relations, depth, maker)
    references = [(told, scope.name("o"), kind) for told, _, kind in inner.columns(GROUPABLE)][:3]
    references = references or [("1", scope.name("o"), "i")]
    names, columns = [name for _, name, _ in references], {name: kind for _, name, kind in references}
    listed = ", ".join(f"{told} AS {name}" for told, name, _ in references)
    sort = rng.choice(SORTS).format(rng.choice(names), rng.choice(names))
    below = f"SELECT {listed} FROM {text} {sort}".strip()
    if rng.random() < 0.2 and "LIMIT" not in sort:
        other = (
            ", ".join(f"{told} AS {name}" for told, name, _ in reversed(references)) if len(references) == 1 else listed
        )
        below = f"SELECT * FROM (SELECT {listed} FROM {text} UNION ALL SELECT {other} FROM {text}) {sort}".strip()
    alias = scope.name("r")
    head, source = ("", f"({below}) AS {alias}")
    if rng.random() < 0.4:
        head, source = f"WITH {alias} AS ({below}) ", alias
    main, made = _take_first(scope, source, names, columns)
    return head + main, made


def _take_first(scope: Scope, source: str, names: list[str], columns: Columns) -> tuple[str, Columns]:
    rng, one, made = scope.rng, scope.rng.choice(names), scope.name("q")
    way = rng.random()
    if way < 0.4:
        return f"SELECT {', '.join(names)} FROM {source} {rng.choice(('LIMIT 2', 'LIMIT 3', 'OFFSET 1'))}", columns
    if way < 0.7:
        call, kind = rng.choice(FOLDED)
        key = f"{rng.choice(names)} AS k, " if rng.random() < 0.5 else ""
        by = " GROUP BY 1" if key else ""
        key_columns = {"k": columns[key.split()[0]]} if key else {}
        return f"SELECT {key}COUNT(*) AS n, {call.format(one)} AS {made} FROM {source}{by}", key_columns | {
            "n": "i",
            made: kind,
        }
    call, kind = rng.choice(VALUED)
    return f"SELECT {', '.join(names)}, {call.format(one)} AS {made} FROM {source}", dict(columns) | {made: kind}
