"""The bytes that a query would read, by the leaves of its optimized plan; partitions it does not need are out.

Spark reports 2^63-1 bytes for an unknown size; leaves that are no files (a row of constants, a range) read nothing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

UNKNOWN = 2**62  # from here on it is no size
FILES = ("Relation ", "Relation[", "RelationV2", "HiveTableRelation ")
LEAF = re.compile(r"^[ :+-]*(?:Relation(?:V2)?|HiveTableRelation)[ \[].*Statistics\(sizeInBytes=([\d.E+]+) (\w+)", re.M)
RELATION = re.compile(r"'UnresolvedRelation \[(.*?)\](?=,|$)", re.M)
UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}


def plan_bytes(plan: Any) -> int | None:
    """Return the bytes of a Spark plan (a Java object) and of its subqueries; None if one leaf is not known."""
    subqueries = _iterate_sequence(plan.subqueriesAll())
    leaves = [leaf for tree in (plan, *subqueries) for leaf in _iterate_sequence(tree.collectLeaves())]
    return _sum_sizes(
        int(str(leaf.stats().sizeInBytes())) for leaf in leaves if str(leaf.simpleString(1)).startswith(FILES)
    )


def parse_plan_bytes(text: str) -> int | None:
    """Return the bytes of a plan as `EXPLAIN COST` prints them, rounded as there."""
    _, begun, optimized = text.partition("== Optimized Logical Plan ==")
    if not begun:
        return None
    return _sum_sizes(
        int(float(number) * UNITS[unit]) for number, unit in LEAF.findall(optimized.partition("\n== ")[0])
    )


def parse_relations(plan: str) -> frozenset[str]:
    """Return the names that a parsed plan reads from, as written, in lower case, parts joined by dots."""
    return frozenset(match.lower().replace(", ", ".") for match in RELATION.findall(plan))


def _sum_sizes(sizes: Iterable[int]) -> int | None:
    scan_sizes = list(sizes)
    return None if any(size >= UNKNOWN for size in scan_sizes) else sum(scan_sizes)


def _iterate_sequence(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
