"""Environments: the version of each model that each view shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.naming import DEFAULT, Naming
from mergeplan.planner.naming import PROD as PROD
from mergeplan.planner.snapshot.snapshot import Snapshot

NAME = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True)
class Environment:
    """The snapshot of every model of an environment by name, and the models that have a view in it.

    `revision` counts its promotions from 1 (0: never promoted); `plan_id` and `promoted_at` (UTC) are those of the
    last. `naming` gives the names of its views, whatever the project says now. After `expires_at` (UTC; None: never)
    the janitor may drop it.
    """

    name: str
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    views: frozenset[str] = frozenset()
    revision: int = 0
    plan_id: str = ""
    promoted_at: datetime | None = None
    naming: Naming = DEFAULT
    expires_at: datetime | None = None

    @property
    def exists(self) -> bool:
        return self.revision > 0

    @property
    def view_names(self) -> Iterator[str]:
        """The names of its views, without making the views."""
        shown = (name for name in self.views if name in self.snapshots and self.snapshots[name].kind.has_view)
        return (self.naming.view(name, self.name) for name in shown)

    @cached_property
    def views_by_name(self) -> Mapping[str, View]:
        """View name -> view, for each model that has one in this environment."""
        shown = (
            _build_view(snapshot, self.naming.view(name, self.name))
            for name, snapshot in self.snapshots.items()
            if name in self.views and snapshot.kind.has_view
        )
        return {view.name: view for view in shown}


@dataclass(frozen=True)
class View:
    """One view of an environment and the physical table it shows."""

    model: str
    name: str
    table: str
    comment: str = ""
    column_comments: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    stored: bool = True  # the table holds rows, and is no view itself
    statements: tuple[Statement, ...] = ()  # that run when it is made or moved


@dataclass(frozen=True)
class ViewChanges:
    """The changes of a promotion: views that are added, swapped or dropped."""

    added: tuple[View, ...] = ()
    swapped: tuple[View, ...] = ()
    dropped: tuple[View, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every view that it touches."""
        return tuple(view.name for view in (*self.added, *self.swapped, *self.dropped))


def parse_environment_name(name: str) -> str:
    """Return the environment's name in lower case; raise RequestError unless it is 1 to 64 of a-z, 0-9 and _."""
    lowered = name.strip().lower()
    if not NAME.fullmatch(lowered):
        shown = name[:80] if name.isprintable() else ascii(name[:80])
        message = f"`{shown}` cannot name an environment."
        raise RequestError(message, hint="Use 1 to 64 letters, digits and underscores, for example `dev`.")
    return lowered


def _without_common(old: Environment, new: Environment) -> tuple[Environment, Environment]:
    if old.name != new.name or replace(old.naming, default="") != replace(new.naming, default=""):
        return old, new
    common = {
        name
        for name, snapshot in new.snapshots.items()
        if old.snapshots.get(name) is snapshot and (name in old.views) == (name in new.views)
    }
    shown = ({name: s for name, s in env.snapshots.items() if name not in common} for env in (old, new))
    old_snapshots, new_snapshots = shown
    return replace(old, snapshots=old_snapshots), replace(new, snapshots=new_snapshots)


def _build_view(snapshot: Snapshot, name: str) -> View:
    model = snapshot.model
    stored, columns = snapshot.kind.is_stored, model.metadata.column_descriptions
    description, properties, swaps = model.metadata.description, model.virtual_properties, model.statements
    return View(model.name, name, snapshot.table, description, columns, properties, stored, swaps.on_virtual_update)


def view_changes(old: Environment, new: Environment) -> ViewChanges:
    """Return the changes from the views of `old` to those of `new`; a view with the same table stays untouched."""
    # An environment older than catalogs in names has no default one: then it is the same.
    default = new.naming.default or old.naming.default
    named = (replace(shown, naming=replace(shown.naming, default=default)) for shown in _without_common(old, new))
    old_views, new_views = (shown.views_by_name for shown in named)
    return ViewChanges(
        added=tuple(new_views[name] for name in sorted(new_views.keys() - old_views.keys())),
        swapped=tuple(
            new_views[name]
            for name in sorted(new_views.keys() & old_views.keys())
            if new_views[name] != old_views[name]
        ),
        dropped=tuple(old_views[name] for name in sorted(old_views.keys() - new_views.keys())),
    )
