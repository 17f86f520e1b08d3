"""The graph of models: which model reads which, ordered with parents first."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model


@dataclass(frozen=True)
class Graph:
    """Models by name, and for each the models it reads; tables that are not models are left out."""

    models: Mapping[str, Model]
    parents: Mapping[str, tuple[str, ...]]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every name, parents before children, otherwise alphabetical."""
        unordered_parents = {name: len(parents) for name, parents in self.parents.items()}
        ready = sorted(name for name, count in unordered_parents.items() if not count)
        ordered: list[str] = []
        while ready:
            ordered += ready
            readers = [reader for name in ready for reader in self.children[name]]
            for reader in readers:
                unordered_parents[reader] -= 1
            ready = sorted({reader for reader in readers if not unordered_parents[reader]})
        if len(ordered) < len(self.parents):  # the sorter is slow, and names the cycle
            TopologicalSorter({name: self.parents[name] for name in sorted(self.parents)}).prepare()
        return tuple(ordered)

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The readers of each model."""
        readers: dict[str, list[str]] = {name: [] for name in self.parents}
        for name in sorted(self.parents):
            for parent in self.parents[name]:
                readers[parent].append(name)
        return {name: tuple(names) for name, names in readers.items()}

    def downstream(self, names: Iterable[str]) -> frozenset[str]:
        """Return everything that reads these models, directly or through others, without the models themselves."""
        return frozenset(reach_names((child for name in names for child in self.children.get(name, ())), self.children))

    def upstream(self, names: Iterable[str]) -> frozenset[str]:
        """Return everything that these models read, directly or through others, without the models themselves."""
        return frozenset(reach_names((parent for name in names for parent in self.parents.get(name, ())), self.parents))


def graph_of(models: Mapping[str, Model]) -> Graph:
    """Return the graph of these models; raise ProjectError with the cycle if there is one."""
    graph = Graph(models, {name: tuple(p for p in model.depends_on if p in models) for name, model in models.items()})
    try:
        _ = graph.order
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]  # graphlib lists it against the reading direction
        start = cycle.index(min(cycle[:-1]))
        cycle = cycle[start:-1] + cycle[:start]
        model = models[cycle[0]]
        message = f"Models depend on each other in a cycle: {' -> '.join([*cycle, cycle[0]])}."
        raise ProjectError(message, place=model.place, hint="Remove one of these references.") from None
    return graph


def update_graph(graph: Graph, models: Mapping[str, Model], names: Collection[str]) -> Graph:
    """Return the `graph_of` these models without a full search for cycles: only those of `names` differ."""
    if models.keys() != graph.models.keys():
        return graph_of(models)  # a table that one of them reads may be a model now, or no longer one
    changed = {name: tuple(p for p in models[name].depends_on if p in models) for name in names}
    if all(graph.parents[name] == parents for name, parents in changed.items()):
        updated = Graph(models, graph.parents)
        vars(updated).update({key: vars(graph)[key] for key in ("order", "children") if key in vars(graph)})
        return updated
    updated = Graph(models, {**graph.parents, **changed})
    return graph_of(models) if any(name in updated.upstream([name]) for name in changed) else updated


def reach_names(starts: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the starts and all names that edges lead to from them.

    >>> sorted(reach_names(["a"], {"a": ("b",), "b": ("c", "a"), "d": ()}))
    ['a', 'b', 'c']
    """
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += edges.get(name, ())
    return reached
