"""The map of a revision, kept as what differs from the revision before: history grows by what changes.

Every WHOLE revisions, and where there is none before, a map is kept as it is: reading one looks at no more rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mergeplan.planner.serial import Json

WHOLE = 200


@dataclass(frozen=True)
class EnvironmentMap:
    """Model -> snapshot id, and the models that have a view."""

    snapshots: Mapping[str, str]
    views: frozenset[str]


def encode_map(new: EnvironmentMap, before: EnvironmentMap | None, revision: int) -> tuple[Json, Json]:
    """Return the map as stored, given the one before; a difference has the key `since`: models' names have a dot."""
    if before is None or revision % WHOLE == 1:
        return dict(new.snapshots), sorted(new.views)
    changed = {name: id for name, id in new.snapshots.items() if before.snapshots.get(name) != id}
    gone = sorted(before.snapshots.keys() - new.snapshots.keys())
    view_changes = {
        "since": revision - 1,
        "added": sorted(new.views - before.views),
        "gone": sorted(before.views - new.views),
    }
    return {"since": revision - 1, "changed": changed, "gone": gone}, view_changes


def read_maps(rows: Iterable[tuple[Json, Json]]) -> Iterable[EnvironmentMap]:
    """Yield the maps of successive revisions, oldest first; the first is a whole one."""
    snapshots: dict[str, str] = {}
    views: frozenset[str] = frozenset()
    for snapshot_ids, shown in rows:
        if is_whole(snapshot_ids):
            snapshots, views = dict(snapshot_ids), frozenset(shown)
        else:
            snapshots = {name: id for name, id in snapshots.items() if name not in snapshot_ids["gone"]} | snapshot_ids[
                "changed"
            ]
            views = (views - {*shown["gone"]}) | {*shown["added"]}
        yield EnvironmentMap(snapshots, views)


def is_whole(snapshots: Json) -> bool:
    return "since" not in snapshots


def ids_in(snapshots: Json) -> Iterable[str]:
    ids: Iterable[str] = (snapshots if is_whole(snapshots) else snapshots["changed"]).values()
    return ids
