"""Expressions of a wanted kind over the sources of a query, from templates that are filled at random.

In a template `{i}` is a value of kind i, `{I}` a literal of that kind, `{x}` a column that can be grouped by, `{X}` the
list of all such columns: an order without ties.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from .data import Columns

LITERALS = {
    "i": ("0", "1", "1", "2", "2", "3", "3", "10", "10", "20", "20", "NULL"),
    "n": ("0.00BD", "5.00BD", "1.50BD"),
    "f": ("0.5D", "0.0D"),
    "s": ("'a'", "'a'", "'b'", "''", "'A'", "'z'"),
    "d": ("DATE '2026-01-02'", "DATE '2026-01-05'"),
    "b": ("TRUE", "TRUE", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"),
    "a": ("ARRAY('a', 'c')", "ARRAY('b')"),
    "t": ("NAMED_STRUCT('x', 1, 'y', 'a')",),
    "m": ("MAP('a', 1)",),
}
GROUPABLE = "insdb"
VALUES = {
    "i": (
        "({i} + {I})", "({i} - {i})", "({i} * 2)", "LENGTH({s})", "COALESCE({i}, 0)", "IF({b}, {i}, {I})",
        "CASE WHEN {b} THEN {i} WHEN {b} THEN {I} ELSE {i} END", "CASE {s} WHEN {S} THEN 1 WHEN {S} THEN {i} END",
        "YEAR({d})", "ABS({i})", "SIZE({a})", "{t}.x", "({i} % 3)", "TRY_CAST({s} AS INT)", "DATEDIFF({d}, {d})",
        "(-{i})", "GREATEST({i}, {i})", "(HASH({i}, {s}) % 7)", "NULLIF({i}, {I})", "ELEMENT_AT({m}, 'a')",
        "CAST({b} AS INT)", "AGGREGATE({a}, 0, (q, e) -> q + 1)", "AGGREGATE({a}, 0, (Q, E) -> q + LENGTH(e))",
        "SIZE(FILTER({a}, flag -> FLAG = {s}))", "STRUCT({i} AS k, {s}).k",
    ),
    "n": (
        "({n} * 2)", "({n} - {n})", "({n} + {i})", "ROUND({n}, 1)", "COALESCE({n}, {N})", "IF({b}, {n}, {N})",
        "CASE WHEN {b} THEN {n} ELSE {N} END", "CAST({i} AS DECIMAL(10, 2))", "NULLIF({n}, {N})", "({n} / 2)",
    ),
    "f": ("({f} + 0.5D)", "COALESCE({f}, 0.0D)", "CAST({i} AS DOUBLE)"),
    "s": (
        "UPPER({s})", "LOWER({s})", "({s} || {s})", "CONCAT({s}, {S})", "SUBSTRING({s}, 1, 1)", "COALESCE({s}, {S})",
        "CASE WHEN {b} THEN {s} ELSE {S} END", "STRING({i})", "REPLACE({s}, 'a', 'b')", "TRIM({s})", "{t}.y",
        "CONCAT_WS('-', {s}, {s})", "TRY_ELEMENT_AT({a}, 1)", "IF({b}, {s}, {S})", "NVL({s}, {S})",
        "ARRAY_JOIN({a}, ',')", "DATE_FORMAT({d}, 'yyyy')", "CAST({n} AS STRING)", "CONCAT(current_user, {s})",
        "CONCAT({s}, current_user())", "TO_JSON(STRUCT({x}, {x}))", "TO_JSON(NAMED_STRUCT('k', {i}, 'K2', {s}))",
    ),
    "d": ("DATE_ADD({d}, 1)", "COALESCE({d}, {D})", "TRUNC({d}, 'MM')", "IF({b}, {d}, {D})",
          "LEAST({d}, current_date)", "LEAST({d}, current_date())"),
    "a": ("ARRAY({s}, {s})", "FILTER({a}, e -> e <> {S})", "TRANSFORM({a}, e -> CONCAT(e, {s}))", "ARRAY({s})",
          "SORT_ARRAY({a})", "FILTER({a}, (e, j) -> j > 0)", "TRANSFORM({a}, E -> CONCAT(e, {s}))",
          "TRANSFORM({a}, e -> CONCAT(e, {s}, E))", "FILTER({a}, Flag -> flag <> {s})"),
    "t": ("NAMED_STRUCT('x', {i}, 'y', {s})", "STRUCT({i} AS x, {s} AS y)"),
    "m": ("MAP({S}, {i})",),
    "b": (
        "({i} > {I})", "({i} = {i})", "({i} <=> {I})", "({i} <> {I})", "({i} IS NULL)", "({s} IS NOT NULL)",
        "({i} IN ({I}, 3))", "({s} NOT IN ({S}, {S}))", "({i} BETWEEN 1 AND {I})", "({s} LIKE 'a%')", "({s} = {S})",
        "({n} >= {N})", "({d} >= {D})", "({s} < {s})", "(NOT {b})", "({b} AND {b})", "({b} OR {b})", "({s} <> {S})",
        "EXISTS({a}, E -> e = {s})",
        "EXISTS({a}, e -> e = {S})", "ARRAY_CONTAINS({a}, {S})", "({i} NOT BETWEEN 2 AND 3)", "COALESCE({b}, FALSE)",
        "({n} > {i})", "({i} <= {I})", "({b} AND {b} AND {b})", "({i} IS DISTINCT FROM {I})", "({b} IS TRUE)",
    ),
}  # fmt: skip
AGGREGATES = (
    ("i", "COUNT(*)"), ("i", "COUNT({x})"), ("i", "COUNT(DISTINCT {x})"), ("n", "SUM({n})"), ("i", "SUM({i})"),
    ("s", "MIN({s})"), ("d", "MAX({d})"), ("n", "MAX({n})"), ("i", "COUNT_IF({b})"), ("i", "COUNT(DISTINCT {x}, {x})"),
    ("i", "SUM({i}) FILTER (WHERE {b})"), ("n", "AVG({n})"), ("b", "BOOL_OR({b})"), ("i", "SUM(IF({b}, 1, 0))"),
    ("a", "SORT_ARRAY(COLLECT_SET({s}))"), ("i", "MAX({i}) - MIN({i})"), ("s", "ANY_VALUE({s})"),
    ("i", "SUM(DISTINCT {i})"), ("i", "COUNT(*) FILTER (WHERE {b})"), ("s", "TO_JSON(MAX(STRUCT({x}, {x})))"),
    ("s", "STRING(MAX_BY({x}, STRUCT({X})))"),
)  # fmt: skip
WINDOWS = (
    ("n", "SUM({n}) OVER (PARTITION BY {x})"), ("i", "COUNT(*) OVER (PARTITION BY {x}, {x})"),
    ("i", "ROW_NUMBER() OVER (PARTITION BY {x} ORDER BY {X})"), ("i", "RANK() OVER (ORDER BY {x})"),
    ("i", "DENSE_RANK() OVER (PARTITION BY {x} ORDER BY {x} DESC)"), ("n", "SUM({n}) OVER (ORDER BY {x})"),
    ("n", "SUM({n}) OVER (PARTITION BY {x} ORDER BY {X} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"),
    ("i", "LAG({i}) OVER (PARTITION BY {x} ORDER BY {X})"), ("s", "MAX({s}) OVER ()"),
    ("i", "COUNT({x}) OVER (PARTITION BY {x} ORDER BY {x} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    ("s", "FIRST_VALUE({s}) OVER (PARTITION BY {x} ORDER BY {X})"),
)  # fmt: skip
CHANCES = (("s", "UUID()"), ("f", "RAND()"))


@dataclass(frozen=True)
class Source:
    """What a FROM brings: an alias and its columns."""

    alias: str
    columns: Columns


@dataclass(frozen=True)
class Scope:
    """What an expression may name, and the chance that chooses."""

    rng: random.Random
    sources: tuple[Source, ...] = ()
    fresh: Iterator[int] = field(default_factory=lambda: count(1))
    owed: tuple[str, ...] = ()  # conditions that a comma join leaves to WHERE

    def columns(self, kinds: str) -> list[tuple[str, str, str]]:
        """(reference, name, kind) of the columns of these kinds; the name stands bare where it can."""
        seen = [name for source in self.sources for name in source.columns]
        return [
            (name if seen.count(name) == 1 and self.rng.random() < 0.6 else f"{source.alias}.{name}", name, kind)
            for source in self.sources
            for name, kind in source.columns.items()
            if kind in kinds
        ]

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self.fresh)}"


def value(scope: Scope, kind: str, depth: int = 2) -> str:
    """An expression of a kind."""
    columns = scope.columns(kind)
    if (depth and scope.rng.random() < (0.45 if columns else 0.75)) or (kind == "b" and depth):
        return fill_template(scope, scope.rng.choice(VALUES[kind]), depth - 1)
    return scope.rng.choice(columns)[0] if columns else scope.rng.choice(LITERALS[kind])


def fill_template(scope: Scope, template: str, depth: int) -> str:
    """A template with each hole filled."""

    def fill(hole: re.Match[str]) -> str:
        kind = hole[1]
        groupable = [reference for reference, _, _ in scope.columns(GROUPABLE)] or ["'k'"]
        if kind == "x":
            return scope.rng.choice(groupable)
        if kind == "X":
            return ", ".join(groupable)
        return scope.rng.choice(LITERALS[kind.lower()]) if kind.isupper() else value(scope, kind, depth)

    return re.sub(r"\{(\w)\}", fill, template)


def condition(scope: Scope) -> str:
    """A predicate over the sources, which some of the rows should pass."""
    one = value(scope, "b", scope.rng.choice((1, 2, 2, 3)))
    return f"({one} OR {value(scope, 'b', 1)})" if scope.rng.random() < 0.65 else one
