"""Table diffs and lineage as the contract shows them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.checks.table_diff import TableDiff
from planner.contract.from_events import sample
from planner.contract.result import ResultLine
from planner.contract.tables import (
    ColumnDifference,
    DifferenceSamples,
    LineageEdge,
    LineageEnd,
    LineageNode,
    RowCounts,
    SchemaDifference,
    TableDifference,
    Unfollowed,
)
from planner.model.model import Model
from planner.project.lineage import Lineage, Node


def table_difference(diff: TableDiff) -> TableDifference:
    """How two tables differ."""
    rows = diff.rows
    return TableDifference(
        model=diff.model or None,
        first=diff.names[0],
        second=diff.names[1],
        same=diff.same,
        key=tuple(diff.key),
        columns_differ=SchemaDifference(
            added=tuple(diff.schema.added), removed=tuple(diff.schema.removed), retyped=tuple(diff.schema.retyped)
        ),
        rows=RowCounts(
            first=rows.counts[0],
            second=rows.counts[1],
            only_first=rows.only[0],
            only_second=rows.only[1],
            common=rows.common,
            matched=rows.matched,
            changed=rows.changed,
            null_keys=rows.null_keys,
            duplicate_keys=rows.duplicate_keys,
        ),
        columns=tuple(ColumnDifference(name=name, changed=count) for name, count in rows.columns),
        samples=DifferenceSamples(
            changed=sample(diff.samples.changed),
            only_first=sample(diff.samples.only_first),
            only_second=sample(diff.samples.only_second),
        ),
    )


def lineage_result(found: Lineage, models: Mapping[str, Model]) -> ResultLine:
    """What a model or column is made from, or what is made from it."""
    kinds = {name: str(models[name].kind) if name in models else None for name in {n.model for n in found.nodes}}
    return ResultLine(
        ok=True,
        model=found.model,
        column=found.column,
        direction="downstream" if found.downstream else "upstream",
        nodes=tuple(
            LineageNode(model=node.model, column=node.column or None, kind=kinds[node.model]) for node in found.nodes
        ),
        edges=tuple(
            LineageEdge(source=_end(each.source), target=_end(each.target), how=str(each.how)) for each in found.edges
        ),
        unfollowed=tuple(Unfollowed(model=model, reason=why) for model, why in found.unfollowed),
    )


def _end(node: Node) -> LineageEnd:
    return LineageEnd(model=node.model, column=node.column or None)
