"""An environment: which version of each model stands under which view."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from planner.errors import RequestError
from planner.snapshot import Snapshot

PROD = "prod"
NAME = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True)
class Environment:
    """Name -> snapshot for every model of the environment, and the models that have a view in it.

    `revision` counts its promotions from 1 (0: never promoted); `plan_id` and `promoted_at` (UTC) tell of the last.
    """

    name: str
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    views: frozenset[str] = frozenset()
    revision: int = 0
    plan_id: str = ""
    promoted_at: datetime | None = None

    @property
    def exists(self) -> bool:
        return self.revision > 0


@dataclass(frozen=True)
class View:
    """One view of an environment and the physical table it shows."""

    model: str
    name: str
    table: str
    comment: str = ""


@dataclass(frozen=True)
class ViewChanges:
    """What a promotion does: views that come, that are re-pointed, that go."""

    added: tuple[View, ...] = ()
    swapped: tuple[View, ...] = ()
    dropped: tuple[View, ...] = ()


def checked_name(name: str) -> str:
    """The environment's name in lower case; RequestError unless it is 1 to 64 of a-z, 0-9 and _."""
    lowered = name.strip().lower()
    if not NAME.fullmatch(lowered):
        shown = name[:80] if name.isprintable() else ascii(name[:80])
        raise RequestError(
            f"`{shown}` cannot name an environment.",
            hint="Use 1 to 64 letters, digits and underscores, for example `dev`.",
        )
    return lowered


def view_name(model: str, environment: str) -> str:
    """`shop.orders` is `shop.orders` in prod and `shop__dev.orders` in dev."""
    schema, table = model.split(".")
    return model if environment == PROD else f"{schema}__{environment}.{table}"


def views_of(environment: Environment) -> dict[str, View]:
    """View name -> view, for each model that has one in this environment."""
    return {
        view_name(name, environment.name): View(
            name, view_name(name, environment.name), snapshot.table, snapshot.model.description
        )
        for name, snapshot in environment.snapshots.items()
        if name in environment.views and snapshot.kind.has_view
    }


def view_changes(old: Environment, new: Environment) -> ViewChanges:
    """What turns the views of `old` into those of `new`; a view that shows the same table stays untouched."""
    before, after = views_of(old), views_of(new)
    return ViewChanges(
        added=tuple(after[name] for name in sorted(after.keys() - before.keys())),
        swapped=tuple(after[name] for name in sorted(after.keys() & before.keys()) if after[name] != before[name]),
        dropped=tuple(before[name] for name in sorted(before.keys() - after.keys())),
    )
