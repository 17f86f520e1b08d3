"""External tables whose declaration is behind the table, as a plan warns of it."""

from collections.abc import Iterator
from dataclasses import replace

from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.category.reasons import format_names
from mergeplan.planner.plan.change import Blocker
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.session.workspace import Workspace


def add_declaration_warnings(work: Workspace, plan: Plan) -> Plan:
    """Return the plan with warnings of declared tables that have other columns, which a query reads by `*`."""
    return replace(plan, warnings=(*plan.warnings, *_find_stale_declarations(work)))


def _find_stale_declarations(work: Workspace) -> Iterator[Blocker]:
    models = work.project.models
    graph = graph_of(models)
    for name, model in sorted(models.items()):
        if not (model.kind.is_external and model.columns) or model.open_columns:
            continue
        readers = (models[reader] for reader in graph.children.get(name, ()) if reader in models)
        if any(reader.sql and traits_of(reader.sql, work.shapes).unnamed for reader in readers):
            yield from _compare_columns(model, {column.name for column in work.find_columns(name)})


def _compare_columns(model: Model, columns: set[str]) -> Iterator[Blocker]:
    declared = {column.name for column in model.columns}
    if columns and (undeclared_columns := sorted(columns - declared)):
        hint = "A `*` over it means the declared columns: declare them, or set `partial_columns: true`."
        yield Blocker(
            f"`{model.name}` has {format_names(undeclared_columns)}, which {model.path} does not declare. {hint}",
            model.place,
        )
    if columns and (gone := sorted(declared - columns)):
        yield Blocker(f"{model.path} declares {format_names(gone)}, which `{model.name}` does not have.", model.place)
