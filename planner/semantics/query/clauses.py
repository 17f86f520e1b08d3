"""A digest of each clause that decides a query's rows, so that the reason of a change can name the clause."""

from collections.abc import Mapping

from mergeplan.planner.semantics.digests import Digests
from mergeplan.planner.semantics.query.algebra import Block, Relation, Source
from mergeplan.planner.semantics.query.sources import Group, Limit, is_constant


def clause_digests(relation: Relation) -> Mapping[str, str]:
    """Return the digest of each clause, '' if it is missing; equal digests are equivalent over equal tables."""
    digests_by_clause: dict[str, str] = {}
    digests = Digests()
    block = relation.block
    while len(block.sources) == 1 and not block.steps:
        source: Source = block.sources[0]
        inside = digests.inside(block, {})
        where = digests.hash_texts(*sorted(digests.part(value, inside) for value in block.where))
        if isinstance(source, Group):
            name = "DISTINCT" if len(source.keys) == len(relation.columns) and source.sets is None else "GROUP BY"
            names = digests.inside(source.block, {})
            set_digest = digests.part(source.sets, names) if source.sets else ""
            key_digests = sorted({digests.part(key, names) for key in source.keys if not is_constant(key)})
            digests_by_clause |= {
                name: digests.hash_texts(str(bool(source.keys)), set_digest, *key_digests),
                "HAVING": where if block.where else "",
            }
            block = source.block
        elif isinstance(source, Limit):
            digests_by_clause["LIMIT"] = digests.hash_texts(*(digests.part(count, {}) for count in source.count))
            digests_by_clause["ORDER BY"] = digests.hash_texts(
                *(digests.part(key, digests.inside(source.block, {})) for key in source.order)
            )
            digests_by_clause["the query that LIMIT takes rows of"] = digests.part(source.provenance, {})
            block = source.block
        else:
            break
    return digests_by_clause | _digest_from_clause(digests, block)


def _digest_from_clause(digests: Digests, block: Block) -> dict[str, str]:
    inside = digests.inside(block, {})
    tables = sorted(source.rows(digests, inside) for source in block.sources)
    steps = sorted(step.source.rows(digests, inside) for step in block.steps)
    where = sorted({digests.part(value, inside) for value in block.where})
    # an inner join's ON is a filter like WHERE, and the algebra does not distinguish them
    joined = len(block.sources) > 1
    return {
        "FROM": digests.hash_texts(*tables),
        "LEFT JOIN or LATERAL": digests.hash_texts(*steps) if steps else "",
        "ON or WHERE" if joined else "WHERE": digests.hash_texts(*where) if where else "",
    }
