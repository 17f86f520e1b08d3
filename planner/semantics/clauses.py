"""A digest of each clause that decides a query's rows, so that the reason of a change can name the clause."""

from __future__ import annotations

from collections.abc import Mapping

from mergeplan.planner.semantics.algebra import Block, Relation, Source
from mergeplan.planner.semantics.digests import Digests
from mergeplan.planner.semantics.sources import Group, Limit, is_constant


def clauses(relation: Relation) -> Mapping[str, str]:
    """Clause -> its digest, '' if it is missing; clauses with equal digests are equivalent over equal tables."""
    found: dict[str, str] = {}
    digests = Digests()
    block = relation.block
    while len(block.sources) == 1 and not block.steps:
        source: Source = block.sources[0]
        inside = digests.inside(block, {})
        where = digests.of(*sorted(digests.part(value, inside) for value in block.where))
        if isinstance(source, Group):
            name = "DISTINCT" if _is_distinct(relation, source) else "GROUP BY"
            found |= {name: _keys(digests, source), "HAVING": where if block.where else ""}
            block = source.block
        elif isinstance(source, Limit):
            found["LIMIT"] = digests.of(*(digests.part(each, {}) for each in source.count))
            found["ORDER BY"] = digests.of(
                *(digests.part(each, digests.inside(source.block, {})) for each in source.order)
            )
            found["the query that LIMIT takes rows of"] = digests.part(source.way, {})
            block = source.block
        else:
            break
    return found | _from(digests, block)


def _from(digests: Digests, block: Block) -> dict[str, str]:
    inside = digests.inside(block, {})
    tables = sorted(source.rows(digests, inside) for source in block.sources)
    steps = sorted(step.source.rows(digests, inside) for step in block.steps)
    where = sorted({digests.part(value, inside) for value in block.where})
    joined = (
        len(block.sources) > 1
    )  # an inner join's ON is a filter like WHERE, and the algebra does not distinguish them
    return {
        "FROM": digests.of(*tables),
        "LEFT JOIN or LATERAL": digests.of(*steps) if steps else "",
        "ON or WHERE" if joined else "WHERE": digests.of(*where) if where else "",
    }


def _keys(digests: Digests, group: Group) -> str:
    inside = digests.inside(group.block, {})
    sets = digests.part(group.sets, inside) if group.sets else ""
    keys = sorted({digests.part(key, inside) for key in group.keys if not is_constant(key)})
    return digests.of(str(bool(group.keys)), sets, *keys)


def _is_distinct(relation: Relation, group: Group) -> bool:
    return len(group.keys) == len(relation.columns) and group.sets is None
