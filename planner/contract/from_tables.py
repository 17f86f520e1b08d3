"""Diffs of tables and of physical plans, and lineage, as the contract shows them."""

from collections.abc import Mapping

from mergeplan.planner.checks.diff.data_diff import ModelDiff
from mergeplan.planner.checks.diff.table_diff import RowDiff, Samples, TableDiff
from mergeplan.planner.contract import tables
from mergeplan.planner.contract.from_events import build_sample
from mergeplan.planner.contract.from_plan import format_spans
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.model.model import Model
from mergeplan.planner.project.lineage import Lineage, Node


def table_difference(diff: TableDiff) -> tables.TableDifference:
    return tables.TableDifference(
        model=diff.model or None,
        first=diff.names[0],
        second=diff.names[1],
        same=diff.same,
        key=tuple(diff.key),
        columns_differ=tables.SchemaDifference.model_validate(diff.schema),
        rows=None if diff.same_files else _row_counts(diff.rows),
        same_files=diff.same_files,
        columns=_column_differences(diff.rows),
        samples=_difference_samples(diff.samples),
    )


def data_difference(diff: ModelDiff) -> tables.DataDifference:
    return tables.DataDifference(
        model=diff.model,
        columns_differ=tables.SchemaDifference.model_validate(diff.schema),
        nullability=tuple(map(tables.NullabilityRow.model_validate, diff.nullability)),
        before=diff.counts[0] if diff.counts else None,
        after=diff.counts[1] if diff.counts else None,
        rows=_row_counts(diff.rows) if diff.rows else None,
        columns=_column_differences(diff.rows) if diff.rows else (),
        key=diff.key,
        days=format_spans(diff.days),
        left_out=format_spans(diff.left_out),
        samples=_difference_samples(diff.samples),
        note=diff.note,
        is_off=diff.is_off,
        same_files=diff.same_files,
        seconds=diff.seconds,
    )


def _row_counts(rows: RowDiff) -> tables.RowCounts:
    return tables.RowCounts(
        first=rows.counts[0],
        second=rows.counts[1],
        only_first=rows.only[0],
        only_second=rows.only[1],
        common=rows.common,
        matched=rows.matched,
        changed=rows.changed,
        null_keys=rows.null_keys,
        duplicate_keys=rows.duplicate_keys,
    )


def _column_differences(rows: RowDiff) -> tuple[tables.ColumnDifference, ...]:
    return tuple(tables.ColumnDifference(name=name, changed=count) for name, count in rows.columns)


def _difference_samples(samples: Samples) -> tables.DifferenceSamples:
    return tables.DifferenceSamples(
        changed=build_sample(samples.changed),
        only_first=build_sample(samples.only_first),
        only_second=build_sample(samples.only_second),
    )


def lineage_result(lineage: Lineage, models: Mapping[str, Model]) -> ResultLine:
    kinds = {name: str(models[name].kind) if name in models else None for name in {n.model for n in lineage.nodes}}
    return ResultLine(
        ok=True,
        model=lineage.model,
        column=lineage.column,
        direction="downstream" if lineage.downstream else "upstream",
        nodes=tuple(
            tables.LineageNode(model=node.model, column=node.column or None, kind=kinds[node.model])
            for node in lineage.nodes
        ),
        edges=tuple(
            tables.LineageEdge(source=_lineage_end(edge.source), target=_lineage_end(edge.target), how=str(edge.how))
            for edge in lineage.edges
        ),
        unfollowed=tuple(tables.Unfollowed(model=model, reason=reason) for model, reason in lineage.unfollowed),
    )


def _lineage_end(node: Node) -> tables.LineageEnd:
    return tables.LineageEnd(model=node.model, column=node.column or None)
