"""The models of the base that read the columns which a change removes."""

from dataclasses import replace

from mergeplan.planner.plan.category.decision import Decision, Inputs
from mergeplan.planner.plan.new_table import shape_of
from mergeplan.planner.semantics.shape import Reads


def add_lost_readers(inputs: Inputs, decision: Decision) -> Decision:
    change = decision.change
    if change is None or change.old is None or change.new is None:
        return decision
    kept_columns = {name.lower() for name in change.new.columns or ()}
    lost_columns = [name for name in change.old.columns or () if name.lower() not in kept_columns]
    if not (kept_columns and lost_columns):
        return decision
    graph, base = inputs.base_graph, inputs.base
    reads_by_model: dict[str, Reads] = {}
    for reader in graph.children.get(change.name, ()):
        parents = {name: base[name].as_parent for name in graph.parents[reader]}
        shape = shape_of(base[reader].model, parents, inputs.shapes)
        reads_by_model[reader] = shape.reads.get(change.name, Reads()) if shape else Reads(every=True)
    readers = tuple(
        (column, tuple(sorted(name for name, reads in reads_by_model.items() if _may_read(reads, column))))
        for column in lost_columns
    )
    return replace(decision, change=replace(change, lost_readers=readers))


def _may_read(reads: Reads, column: str) -> bool:
    return reads.every or column.lower() in reads.rows.union(*reads.outputs.values())
