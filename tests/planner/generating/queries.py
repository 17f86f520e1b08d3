"""Queries over relations with known columns, every clause of Spark's SELECT among them."""

from __future__ import annotations

from dataclasses import dataclass

from .data import Columns
from .expressions import AGGREGATES, CHANCES, GROUPABLE, VALUES, WINDOWS, Scope, Source, condition, fill_template, value
from .ordered import order_taken
from .sources import Relations, make_from, subquery_condition


@dataclass(frozen=True)
class Query:
    """A text and what it returns."""

    sql: str
    columns: Columns


@dataclass(frozen=True)
class Output:
    """One expression of a SELECT list."""

    sql: str
    name: str
    kind: str

    @property
    def text(self) -> str:
        return self.sql if self.sql.rpartition(".")[2] == self.name else f"{self.sql} AS {self.name}"


def query(scope: Scope, relations: Relations, depth: int = 2) -> Query:
    """A query, possibly with CTEs of its own that may bear the names of tables."""
    rng = scope.rng
    if depth < 1 or rng.random() < 0.7:
        return body(scope, relations, depth)
    known, texts = dict(relations), []
    for _ in range(rng.choice((1, 1, 2))):
        shadow = [name.split(".")[1] for name in relations if "." in name and name.split(".")[1] not in known]
        name = rng.choice(shadow) if shadow and rng.random() < 0.2 else scope.name("c")
        inner = query(scope, known, depth - 1)
        texts.append(f"{name} AS ({inner.sql})")
        known = {name: inner.columns, **known}
    ctes = {name: columns for name, columns in known.items() if name not in relations}
    read = ctes if rng.random() < 0.7 else known
    main = body(scope, read, depth - 1)
    return Query(f"WITH {', '.join(texts)} {main.sql}", main.columns)


def body(scope: Scope, relations: Relations, depth: int) -> Query:
    """A SELECT of some shape, or a set operation."""
    shapes = (
        plain, plain, plain, plain, make_star, make_groups, make_groups, total, distinct, make_union, make_whole_union,
        make_limit, generating, make_pivot, make_hash, lateral_aliases, make_order, make_order,
    )  # fmt: skip
    return scope.rng.choice(shapes)(scope, relations, depth)


def outputs(scope: Scope, amount: int) -> list[Output]:
    """Distinctly named values; some bear the name of a column that they are not."""
    by_name: dict[str, Output] = {}
    for _ in range(amount):
        columns = scope.columns("insdbatmf")
        if columns and scope.rng.random() < 0.55:
            reference, name, kind = scope.rng.choice(columns)
            output = Output(reference, name, kind)
        else:
            kind = scope.rng.choice("iinnssdbfa")
            text = fill_template(scope, scope.rng.choice(VALUES[kind]), 1)
            if scope.rng.random() < 0.015:
                kind, text = scope.rng.choice(CHANCES)
            output = Output(text, scope.name("v"), kind)
        if columns and scope.rng.random() < 0.08:
            output = Output(output.sql, scope.rng.choice(columns)[1], output.kind)
        by_name.setdefault(output.name, output)
    return list(by_name.values())


def join_outputs(selection: list[Output]) -> str:
    return ", ".join(output.text for output in selection)


def kinds(selection: list[Output]) -> dict[str, str]:
    return {output.name: output.kind for output in selection}


def where(scope: Scope, relations: Relations, share: float = 0.25) -> str:
    """A WHERE clause, or nothing."""
    parts = [*scope.owed, *([condition(scope)] if scope.rng.random() < share else [])]
    if scope.rng.random() < 0.15:
        parts.append(subquery_condition(scope, relations))
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def plain(scope: Scope, relations: Relations, depth: int) -> Query:
    """Values, windows among them at times, with QUALIFY at times."""
    text, inner = make_from(scope, relations, depth, query)
    selection, rng = outputs(inner, rng_amount(scope)), scope.rng
    if rng.random() < 0.2:
        kind, window = rng.choice(WINDOWS)
        selection.append(Output(fill_template(inner, window, 0), scope.name("w"), kind))
    if rng.random() < 0.06 and relations:
        selection.append(Output(_scalar(inner, relations), scope.name("q"), "i"))
    sql = f"SELECT {join_outputs(selection)} FROM {text}{where(inner, relations)}"
    if rng.random() < 0.08:
        kind, window = rng.choice([window for window in WINDOWS if window[0] == "i"])
        sql += f" QUALIFY {fill_template(inner, window, 0)} <= {rng.choice('234')}"
    if rng.random() < 0.05:
        sql += " ORDER BY 1"
    return Query(sql, kinds(selection))


def rng_amount(scope: Scope) -> int:
    return scope.rng.choice((2, 3, 3, 4, 5))


def _scalar(scope: Scope, relations: Relations) -> str:
    """A scalar subquery, correlated at times."""
    rng, alias = scope.rng, scope.name("u")
    name = rng.choice(list(relations))
    inner = Scope(rng, (Source(alias, relations[name]),), scope.fresh)
    function = rng.choice(("COUNT(*)", "MAX({i})", "SUM({i})"))
    matches = [
        f"{alias}.{own} = {theirs}"
        for own, kind in relations[name].items()
        for theirs, _, other in scope.columns(GROUPABLE)
        if kind == other and kind in GROUPABLE and "." in theirs
    ]
    on = f" WHERE {rng.choice(matches)}" if matches and rng.random() < 0.7 else ""
    return f"(SELECT {fill_template(inner, function, 0)} FROM {name} AS {alias}{on})"


def make_star(scope: Scope, relations: Relations, depth: int) -> Query:
    """`*`, or a table's `*` and something more; plain where a name would come twice."""
    text, inner = make_from(scope, relations, depth, query)
    names = [name for source in inner.sources for name in source.columns]
    if len(set(names)) < len(names):
        return plain(scope, relations, depth)
    selection = [Output("", name, kind) for source in inner.sources for name, kind in source.columns.items()]
    tail = where(inner, relations)
    if scope.rng.random() < 0.6:
        return Query(f"SELECT * FROM {text}{tail}", kinds(selection))
    star = scope.rng.choice(("*", ", ".join(f"{source.alias}.*" for source in inner.sources)))
    more = [output for output in outputs(inner, 2) if output.name not in names]
    ahead = scope.rng.random() < 0.5
    parts = [join_outputs(more), star] if ahead else [star, join_outputs(more)]
    selection = [*more, *selection] if ahead else [*selection, *more]
    return Query(f"SELECT {', '.join(filter(None, parts))} FROM {text}{tail}", kinds(selection))


def make_groups(scope: Scope, relations: Relations, depth: int) -> Query:
    """Keys and aggregates."""
    text, inner = make_from(scope, relations, depth, query)
    rng, columns = scope.rng, inner.columns(GROUPABLE)
    if not columns:
        return total(scope, relations, depth)
    picked = {name: Output(sql, name, kind) for sql, name, kind in rng.sample(columns, min(len(columns), 2))}
    keys = list(picked.values())[: rng.choice((1, 1, 2))]
    if rng.random() < 0.15:
        keys.append(Output(value(inner, "s", 1), scope.name("k"), "s"))
    folded = aggregates(inner, set(picked))
    by = _grouping(scope, keys)
    if by.startswith(("ROLLUP", "CUBE", "GROUPING SETS")) and rng.random() < 0.6:
        told = rng.choice(("GROUPING__ID", "grouping__id", "GROUPING_ID()", f"GROUPING({keys[0].sql})"))
        folded.append(Output(told, scope.name("g"), "i"))
    sql = f"SELECT {join_outputs([*keys, *folded])} FROM {text}{where(inner, relations)} GROUP BY {by}"
    if rng.random() < 0.3:
        folded_one = fill_template(inner, rng.choice([template for kind, template in AGGREGATES if kind == "i"]), 0)
        key = f"{keys[0].sql} IS NOT NULL"
        having = rng.choice((f"{folded_one} > {rng.choice('0001')}", key, f"{key} AND COUNT(*) > 1"))
        sql += f" HAVING {having}"
    return Query(sql, kinds([*keys, *folded]))


def _grouping(scope: Scope, keys: list[Output]) -> str:
    named = ", ".join(key.sql for key in keys)
    ordinals = ", ".join(str(number) for number, _ in enumerate(keys, 1))
    sets = ", ".join(f"({key.sql})" for key in keys)
    plainly = (named, named, named, ordinals, "ALL", named)
    richly = (f"ROLLUP ({named})", f"CUBE ({named})", f"GROUPING SETS (({named}), ())", f"GROUPING SETS ({sets}, ())")
    return scope.rng.choice(richly if scope.rng.random() < 0.3 else plainly)


def aggregates(scope: Scope, taken: set[str], amount: int = 2) -> list[Output]:
    """Aggregates with fresh names; some bear the name of a column."""
    selection = []
    for _ in range(amount):
        kind, template = scope.rng.choice(AGGREGATES)
        names = [name for _, name, _ in scope.columns("insd") if name not in taken]
        name = scope.rng.choice(names) if names and scope.rng.random() < 0.15 else scope.name("g")
        if name in taken:
            continue
        taken.add(name)
        selection.append(Output(fill_template(scope, template, 1), name, kind))
    return selection


def total(scope: Scope, relations: Relations, depth: int) -> Query:
    """One row of aggregates."""
    text, inner = make_from(scope, relations, depth, query)
    selection = aggregates(inner, set(), 3)
    return Query(f"SELECT {join_outputs(selection)} FROM {text}{where(inner, relations)}", kinds(selection))


def distinct(scope: Scope, relations: Relations, depth: int) -> Query:
    """SELECT DISTINCT."""
    text, inner = make_from(scope, relations, depth, query)
    selection = [output for output in outputs(inner, 3) if output.kind != "m"] or [Output("1", scope.name("v"), "i")]
    return Query(f"SELECT DISTINCT {join_outputs(selection)} FROM {text}{where(inner, relations)}", kinds(selection))


def make_union(scope: Scope, relations: Relations, depth: int) -> Query:
    """Two or three SELECTs joined by set operators."""
    rng = scope.rng
    operator = rng.choice(
        ("UNION ALL", "UNION ALL", "UNION ALL", "UNION", "UNION", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL")
    )
    text, inner = make_from(scope, relations, 0, query)
    selection = [output for output in outputs(inner, 3) if output.kind != "m"] or [Output("1", scope.name("v"), "i")]
    branches = [f"SELECT {join_outputs(selection)} FROM {text}{where(inner, relations)}"]
    for _ in range(rng.choice((1, 1, 2))):
        other, below = make_from(scope, relations, 0, query)
        values = (
            f"{value(below, output.kind, 1)} AS {output.name if rng.random() < 0.6 else scope.name('y')}"
            for output in selection
        )
        branches.append(f"SELECT {', '.join(values)} FROM {other}{where(below, relations)}")
    return Query(f" {operator} ".join(branches), kinds(selection))


def make_whole_union(scope: Scope, relations: Relations, depth: int) -> Query:
    """All columns of a table, as they stand, and values of the same kinds."""
    name = scope.rng.choice(list(relations))
    other, below = make_from(scope, relations, 0, query)
    values = ", ".join(f"{value(below, kind, 1)} AS {scope.name('y')}" for kind in relations[name].values())
    branches = [f"SELECT * FROM {name}", f"SELECT {values} FROM {other}{where(below, relations)}"]
    return Query(" UNION ALL ".join(branches), relations[name])


def make_limit(scope: Scope, relations: Relations, depth: int) -> Query:
    """The first rows in an order by every output."""
    text, inner = make_from(scope, relations, depth, query)
    selection = [output for output in outputs(inner, 3) if output.kind in GROUPABLE] or [
        Output("1", scope.name("v"), "i")
    ]
    order = ", ".join(f"{number}{scope.rng.choice(('', ' DESC'))}" for number, _ in enumerate(selection, 1))
    sql = f"SELECT {join_outputs(selection)} FROM {text}{where(inner, relations)} ORDER BY {order}"
    return Query(f"{sql} LIMIT {scope.rng.choice('2345')}", kinds(selection))


def make_order(scope: Scope, relations: Relations, depth: int) -> Query:
    """What takes rows by the order in which they come."""
    return Query(*order_taken(scope, relations, min(depth, 1), query))


def generating(scope: Scope, relations: Relations, depth: int) -> Query:
    """A generator in the SELECT list."""
    text, inner = make_from(scope, relations, depth, query)
    selection, name = outputs(inner, 2), scope.name("e")
    generator, brought = scope.rng.choice((
        (f"EXPLODE({{a}}) AS {name}", {name: "s"}), (f"EXPLODE_OUTER({{a}}) AS {name}", {name: "s"}),
        (f"INLINE(ARRAY(STRUCT({{i}} AS {name}, {{s}} AS {name}y)))", {name: "i", f"{name}y": "s"}),
        (f"STACK(2, {{s}}, {{S}}) AS {name}", {name: "s"}), (f"POSEXPLODE({{a}}) AS (p{name}, {name})",
                                                            {f"p{name}": "i", name: "s"}),
        (f"JSON_TUPLE('{{\"a\": 1}}', 'a') AS {name}", {name: "s"}),
    ))  # fmt: skip
    sql = f"SELECT {join_outputs(selection)}, {fill_template(inner, generator, 1)} FROM {text}{where(inner, relations)}"
    return Query(sql, kinds(selection) | brought)


def make_pivot(scope: Scope, relations: Relations, depth: int) -> Query:
    """PIVOT over three columns, or over whatever columns a relation has."""
    text, inner = make_from(scope, relations, 0, query)
    strings, numbers = inner.columns("s"), inner.columns("in")
    if not strings or not numbers:
        return plain(scope, relations, depth)
    key, _, kind = scope.rng.choice(inner.columns(GROUPABLE))
    made = f"SELECT {key} AS pk, {scope.rng.choice(strings)[0]} AS ps, {scope.rng.choice(numbers)[0]} AS pn FROM {text}"
    sql = f"SELECT * FROM ({made}) PIVOT (SUM(pn) AS t FOR ps IN ('a' AS pa, 'b' AS pb))"
    return Query(sql, {"pk": kind, "pa": "n", "pb": "n"})


def make_hash(scope: Scope, relations: Relations, depth: int) -> Query:
    """What reads every column at once."""
    text, inner = make_from(scope, relations, 0, query)
    name = scope.name("h")
    source = scope.rng.choice(inner.sources).alias
    template, kind = scope.rng.choice((
        ("TO_JSON(STRUCT(*))", "s"), ("COUNT(DISTINCT *)", "i"), ("COUNT(*)", "i"), ("SIZE(ARRAY(STRUCT(*)))", "i"),
        (f"TO_JSON(STRUCT({source}.*))", "s"), (f"TO_JSON(STRUCT({source}.*))", "s"),
    ))  # fmt: skip
    return Query(f"SELECT {template} AS {name} FROM {text}{where(inner, relations)}", {name: kind})


def lateral_aliases(scope: Scope, relations: Relations, depth: int) -> Query:
    """Outputs that name the outputs before them."""
    text, inner = make_from(scope, relations, depth, query)
    first, second = scope.name("l"), scope.name("l")
    selection = [Output(value(inner, "i", 1), first, "i"), *outputs(inner, 2), Output(f"{first} + 1", second, "i")]
    return Query(f"SELECT {join_outputs(selection)} FROM {text}{where(inner, relations)}", kinds(selection))
