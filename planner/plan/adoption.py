"""Adopting: tables that are there already become the first versions of models, and nothing of them is computed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change


def as_adopted(change: Change) -> Change:
    """Return the change of a model that adopts a table, with the adopted time as needed and the copied time as missing.

    Adoption computes nothing. A later run fills the time that the adopted table does not hold.
    """
    if change.adopts is None:
        return change
    rows = change.adopts.rows
    copied = rows if change.adopts.copies else ()
    return replace(change, needed=rows, missing=copied, copies=copied)


def models_of_adoption(
    models: Mapping[str, Model], adopted_names: Collection[str], deployed_names: Collection[str]
) -> list[str]:
    """Return the adopted models with what they need in prod; raise RequestError if that is another table."""
    graph, available_names = graph_of(models), {*adopted_names, *deployed_names}
    names: list[str] = []
    for name in graph.order:
        model = models[name]
        if name in available_names or model.kind.is_external:
            names += [name] if name in adopted_names else []
            available_names.add(name)
        elif model.kind.is_seed or (not model.kind.is_stored and available_names.issuperset(graph.parents[name])):
            names.append(name)
            available_names.add(name)
    _check_read(graph, names, available_names)
    # Seeds, and models made of seeds alone, that no adopted model uses stay out.
    near = {*adopted_names, *graph.downstream(adopted_names)}
    used_names = {name for name in names if name in near}
    used_names |= graph.upstream(used_names) & set(names)
    return [name for name in names if name in used_names]


def _check_read(graph: Graph, names: Iterable[str], there: Collection[str]) -> None:
    for name in names:
        for parent in graph.parents[name]:
            if parent not in there:
                stored = _first_stored(graph, parent, there)
                raise RequestError(
                    f"`{name}` reads `{stored}`, which is neither adopted nor in prod.",
                    hint=f"Adopt it too: `--table {stored}=TABLE`; or build it first: `mergeplan plan --select-model "
                    f"+{stored}`.",
                )


def _first_stored(graph: Graph, name: str, there: Collection[str]) -> str:
    if graph.models[name].kind.is_stored:
        return name
    return _first_stored(graph, next(parent for parent in graph.parents[name] if parent not in there), there)
