"""Ownership of a view with the name of a model's view: it is ours if it reads a version of the model's table.

Views that others made are replaced only on request (`promotion.replaces_views`, or an adoption), and never dropped.
"""

import re
from collections.abc import Iterable

from mergeplan.planner.apply.table_owner import check_owner
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Refused
from mergeplan.planner.naming import PROD, quote_name
from mergeplan.planner.snapshot.environment import View
from mergeplan.planner.state.store import StateStore


def versions_of(view: View) -> str:
    """Return a pattern of every version's name of the view's table in a query.

    A version has no two underscores: `s__t__dev__v1` is a version of `s.t__dev`, and not of `s.t`.
    """
    prefix = f"{quote_name(view.table.rpartition('__')[0])[:-1]}__"
    return f"{re.escape(prefix)}(?:[^`_]|_(?!_))+`"


def check_unoccupied(
    views: Iterable[View], environment: str, store: StateStore, engine: Engine, *, replaces: bool
) -> None:
    """Raise Refused if a table, or others' view, has a name that a new view needs; describe only such objects.

    A view of a table that another state made counts as others', whatever `replaces` says.
    """
    occupied = list[View]()
    views_by_schema: dict[str, list[View]] = {}
    for view in views:
        views_by_schema.setdefault(view.name.rpartition(".")[0], []).append(view)
    for schema, schema_views in sorted(views_by_schema.items()):
        object_names = {name.lower() for name in engine.catalog.objects(schema)}
        for view in schema_views:
            if view.name.rpartition(".")[2].lower() in object_names:
                occupied.append(view)
    for view in occupied:
        _check_one(view, environment, store, engine, replaces=replaces)


def _check_one(view: View, environment: str, store: StateStore, engine: Engine, *, replaces: bool) -> None:
    standing = engine.catalog.standing(view.name)
    if standing is None:
        return
    if standing.is_view and (version := re.search(versions_of(view), standing.sql)):
        table = version[0].replace("`", "")
        check_owner([table] if store.tables.get(table) is None else [], store, engine)
        return
    if standing.is_view and replaces:
        return
    occupant = "a view that mergeplan did not make" if standing.is_view else "a table"
    hint = "Rename or drop it."
    if environment == PROD and standing.is_view:
        hint = "Rename or drop it; or set `promotion: {replaces_views: true}` in config.yaml, and it is replaced."
    elif environment == PROD:
        hint = "Take it over with `mergeplan adopt`, or rename it."
    raise Refused(f"`{view.name}` is {occupant}, but the view of `{view.model}` needs this name.", hint=hint)
