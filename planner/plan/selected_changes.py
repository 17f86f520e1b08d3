"""Plans of selected changes: the chosen models as the files have them, all others as they are deployed."""

from collections.abc import Iterable, Mapping

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import Changed, select
from mergeplan.planner.plan.category.categorize import is_edited
from mergeplan.planner.snapshot.environment import Environment


def select_models(
    models: Mapping[str, Model],
    deployed_environment: Environment,
    selectors: Iterable[str],
    changed_models: Changed | None = None,
) -> Mapping[str, Model]:
    """Return the models of a plan in which only the selected ones change.

    Selected models without a file are removed. Raise RequestError if one reads a model neither selected nor deployed.
    """
    deployed = {name: snapshot.model for name, snapshot in deployed_environment.snapshots.items()}
    chosen = select(graph_of({**deployed, **models}), selectors, changed_models)
    kept_models = {name: model for name, model in deployed.items() if name not in chosen}
    # tables that no model defines are no changes: every model may read them
    outer = {name: model for name, model in models.items() if model.kind.is_external and name not in kept_models}
    result = {**kept_models, **outer, **{name: models[name] for name in chosen if name in models}}
    for name in sorted(chosen & models.keys()):
        for read in models[name].depends_on:
            if read in models and read not in result:
                message = f"`{name}` reads `{read}`, which is neither selected nor in `{deployed_environment.name}`."
                raise RequestError(message, hint=f"Select it too: `+{name}`.")
    return result


def find_unselected(models: Mapping[str, Model], selected: Mapping[str, Model]) -> tuple[str, ...]:
    """Return the models that the files add, edit or remove, and that a plan of the `selected` ones leaves alone."""
    names = {name for name in models.keys() ^ selected.keys() if not {**models, **selected}[name].kind.is_external}
    names |= {name for name in models.keys() & selected.keys() if is_edited(selected[name], models[name])}
    return tuple(sorted(names))
