"""What stands after FROM: tables, derived tables, joins, lateral views; and the subqueries of a WHERE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from .data import Columns
from .expressions import GROUPABLE, Scope, Source, condition, fill_template

Relations = Mapping[str, Columns]


class Made(Protocol):
    """A query that was made elsewhere."""

    @property
    def sql(self) -> str: ...

    @property
    def columns(self) -> Columns: ...


Maker = Callable[[Scope, Relations, int], Made]


def make_from(scope: Scope, relations: Relations, depth: int, maker: Maker) -> tuple[str, Scope]:
    """A FROM clause and the scope that it opens."""
    text, first = source(scope, relations, depth, maker, set())
    sources: tuple[Source, ...] = (first,)
    owed: tuple[str, ...] = ()
    last = False
    for _ in range(scope.rng.choice((0, 0, 0, 1, 1, 2))):
        if not last:
            before = sources
            more, sources, last = make_join(scope, relations, depth, maker, sources)
            owed = (_match(scope, before, sources[-1]),) if last else ()
            text += more
    if scope.rng.random() < 0.1 and not last:
        alias, name = scope.name("x"), scope.name("e")
        outer = scope.rng.choice(("", "OUTER "))
        here = Scope(scope.rng, sources, scope.fresh)
        kind, names, columns = scope.rng.choice(
            (("EXPLODE", name, {name: "s"}), ("POSEXPLODE", f"p{name}, {name}", {f"p{name}": "i", name: "s"}))
        )
        text += f" LATERAL VIEW {outer}{kind}({fill_template(here, '{a}', 1)}) {alias} AS {names}"
        sources = (*sources, Source(alias, columns))
    return text, Scope(scope.rng, sources, scope.fresh, owed)


def source(scope: Scope, relations: Relations, depth: int, maker: Maker, taken: set[str]) -> tuple[str, Source]:
    """One relation: a table with or without an alias, a derived table, or VALUES."""
    rng, name = scope.rng, scope.rng.choice(list(relations))
    if depth and rng.random() < 0.15:
        inner, alias = maker(scope, relations, depth - 1), scope.name("t")
        return f"({inner.sql}) AS {alias}", Source(alias, inner.columns)
    if rng.random() < 0.03:
        alias = scope.name("t")
        return f"(VALUES (1, 'a'), (2, NULL), (3, 'b')) AS {alias}(id, flag)", Source(alias, {"id": "i", "flag": "s"})
    if rng.random() < 0.06:
        alias = scope.name("t")
        names = {scope.name("p"): kind for kind in relations[name].values()}
        whole = f"(SELECT * FROM {name})" if rng.random() < 0.5 else name
        return f"{whole} AS {alias}({', '.join(names)})", Source(alias, names)
    short = name.rpartition(".")[2]
    if rng.random() < 0.35 and short not in taken:
        return name, Source(short, relations[name])
    alias = scope.name("t")
    return f"{name} AS {alias}", Source(alias, relations[name])


def make_join(
    scope: Scope, relations: Relations, depth: int, maker: Maker, left: tuple[Source, ...]
) -> tuple[str, tuple[Source, ...], bool]:
    """A join's text, the sources after it, and whether nothing may follow."""
    rng = scope.rng
    text, right = source(scope, relations, depth, maker, {table.alias for table in left})
    seen = [name for table in left for name in table.columns]
    shared = [name for name in right.columns if name in seen]
    rest = Source(right.alias, {name: kind for name, kind in right.columns.items() if name not in shared})
    alike = bool(shared) and all(
        right.columns[name] == table.columns[name] and right.columns[name] in GROUPABLE and seen.count(name) == 1
        for table in left
        for name in shared
        if name in table.columns
    )
    how = rng.choice(("", "", "LEFT ", "LEFT ", "LEFT ", "RIGHT ", "FULL ", "LEFT SEMI ", "LEFT ANTI ", ","))
    how = "CROSS " if rng.random() < 0.02 else how
    if alike and rng.random() < 0.2:
        if rng.random() < 0.4:
            return f" NATURAL {rng.choice(('', 'LEFT '))}JOIN {text}", (*left, rest), False
        one = rng.choice(shared)
        columns = {name: kind for name, kind in right.columns.items() if name != one}
        side = rng.choice(("", "LEFT ", "FULL "))
        return f" {side}JOIN {text} USING ({one})", (*left, Source(right.alias, columns)), False
    after = left if how in ("LEFT SEMI ", "LEFT ANTI ") else (*left, right)
    if how == ",":
        return f", {text}", after, True  # the condition is left to WHERE
    if how == "CROSS ":
        return f" CROSS JOIN {text}", after, False
    return f" {how}JOIN {text} ON {_match(scope, left, right)}", after, False


def _match(scope: Scope, left: tuple[Source, ...], right: Source) -> str:
    """A join condition: an equality, and more at times."""
    rng = scope.rng
    pairs = [
        f"{table.alias}.{one} {rng.choice(('=', '=', '=', '=', '=', '=', '<=>', '>='))} {right.alias}.{two}"
        for table in left
        for one, kind in table.columns.items()
        for two, other in right.columns.items()
        if kind == other and kind in GROUPABLE and (one == two or rng.random() < 0.08)
    ]
    both = Scope(rng, (*left, right), scope.fresh)
    more = [condition(both)] if not pairs or rng.random() < 0.25 else []
    return " AND ".join([*([rng.choice(pairs)] if pairs else []), *more])


def subquery_condition(scope: Scope, relations: Relations) -> str:
    """EXISTS, IN or a comparison with a scalar subquery, correlated at times."""
    rng, alias = scope.rng, scope.name("u")
    name = rng.choice(list(relations))
    columns = relations[name]
    pairs = [
        (own, theirs)
        for own, kind in columns.items()
        for theirs, _, other in scope.columns(GROUPABLE)
        if kind == other and kind in GROUPABLE
    ]
    if not pairs:
        return "TRUE"
    own, theirs = rng.choice(pairs)
    inner = Scope(rng, (Source(alias, columns),), scope.fresh)
    more = f" AND {condition(inner)}" if rng.random() < 0.4 else ""
    outside = theirs if "." in theirs or theirs not in columns else "1"
    if not rng.random() < 0.5:
        negated = rng.choice(("", "", "NOT "))
        filtered = f" WHERE {more[5:]}" if more else ""
        if rng.random() < 0.4:  # a scalar subquery: NULL where it has no row
            most = f"SELECT MAX({alias}.{own}) FROM {name} AS {alias}{filtered} HAVING COUNT(*) > {rng.choice('0234')}"
            return f"{theirs} {negated}IN ({rng.choice((most, f'({most})'))})"
        return f"{theirs} {negated}IN (SELECT {alias}.{own} FROM {name} AS {alias}{filtered})"
    if rng.random() < 0.75 and outside != "1":
        return (
            f"{rng.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {name} AS {alias} WHERE {alias}.{own} = {outside}{more})"
        )
    return f"{theirs} >= (SELECT MIN({alias}.{own}) FROM {name} AS {alias})"
