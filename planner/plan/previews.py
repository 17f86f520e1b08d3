"""Previews: tables of an environment beside prod for forward-only changes.

A preview holds some days, computed by the new query; or all rows of prod's table, where the query of a rebuild is the
same. What prod gets is decided without them. A preview is never shared and never promoted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Timeline, build_timeline, subtract_intervals
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import DEFAULT, Naming
from mergeplan.planner.plan.change import Category, Change, Forward
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.snapshot import PREVIEW, Snapshot, assign_version, version_of

# Edits that are about runs to come, and their readers: only a copy of all rows shows what stays.
KEEPING_ALL = ("later-form", "reads-forward-only")
SINCE_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class PreviewStage:
    """An environment beside prod for previews: what tables hold, the `window`, and whether any are `filled`."""

    environment: str
    loaded: Loaded
    window: Window
    naming: Naming = DEFAULT
    filled: bool = True


def build_previews(
    graph: Graph, snapshots: Mapping[str, Snapshot], changes: tuple[Change, ...], stage: PreviewStage
) -> tuple[dict[str, Snapshot], tuple[Change, ...]]:
    """Return the snapshots and changes with previews of what forward-only changes keep, and of what reads that."""
    # A model with a preview moves its readers too: rows of a preview must not reach a table that prod gets.
    shown, whole = dict(snapshots), set[str]()
    by_name = {change.name: change for change in changes}
    for name in graph.order:
        change = by_name.get(name)
        if change is None or change.new is None:
            continue
        moved = [p for p in graph.parents[name] if shown[p] is not snapshots[p]]
        keeps_all = change.category is Category.FORWARD_ONLY and change.shares is not None
        if not change.kind.is_stored:
            if moved:
                versions = {p: shown[p].version for p in graph.parents[name]}
                by_name[name] = _preview_view(change, versions, stage.naming)
                whole |= {name} if whole.issuperset(moved) else set()
        elif keeps_all and whole.issuperset(moved) and change.rule in KEEPING_ALL and change.keeps_rows:
            by_name[name] = _copy_table(change, stage)
            whole.add(name)
        elif keeps_all or (moved and change.shares is None):
            by_name[name] = _preview_table(change, stage)
        new = by_name[name].new
        assert new is not None
        shown[name] = new
    return shown, tuple(by_name[change.name] for change in changes)


def _preview_view(change: Change, versions: Mapping[str, str], naming: Naming) -> Change:
    new = change.new
    assert new is not None
    assert new.meaning is not None
    shown = assign_version(new, version_of(new.model, new.meaning, dict(versions)), naming)
    return replace(change, new=shown, preview=True, shares=None, forward=Forward(lands=new))


def _copy_table(change: Change, stage: PreviewStage) -> Change:
    """Return a preview over the files of the table that prod shows: whole, with nothing to compute."""
    new, forward = change.new, change.forward
    assert new is not None
    assert forward is not None
    shown = assign_version(new, PREVIEW + digest("copy", stage.environment, new.version)[:12], stage.naming)
    missing = subtract_intervals(forward.rows, stage.loaded.timeline_of(shown) or forward.rows)
    return replace(
        change,
        new=shown,
        preview=True,
        needed=forward.rows,
        missing=forward.rows if missing and not new.kind.is_incremental else missing,
        forward=replace(forward, lands=new, is_copied=True),
    )


def _preview_table(change: Change, stage: PreviewStage) -> Change:
    new, forward = change.new, change.forward or Forward()
    assert new is not None
    # Its version names the environment: a preview is never shared.
    parts = (stage.environment, new.version, str(stage.window.start or ""))
    version = PREVIEW + digest("preview", *parts)[:12]
    shown = assign_version(replace(new, forced=False), version, stage.naming)
    if shown.meaning is not None:  # it is computed by its query alone, and took over no rows
        shown = replace(shown, meaning=replace(shown.meaning, held_rows="", held=()))
    needed = _find_preview_time(new.model, _preview_end(change, stage), stage.window)
    missing = subtract_intervals(needed, stage.loaded.timeline_of(shown)) if stage.filled else ()
    return replace(
        change,
        new=shown,
        preview=True,
        shares=None,
        copies=(),  # what the old table holds of these days comes from the old query
        needed=needed if stage.filled else (),
        missing=needed if missing and not new.kind.is_incremental else missing,
        forward=replace(forward, lands=new),
    )


def _preview_end(change: Change, stage: PreviewStage) -> datetime | None:
    assert change.new is not None
    held_time = change.needed or (stage.loaded.timeline_of(change.old) if change.old else ())
    if not held_time:
        return None
    # not past the end of prod's table, so that the two can be compared day by day
    window_end = stage.window.end
    return change.new.model.cron.cut(min(window_end, held_time[-1].end)) if window_end else held_time[-1].end


def _find_preview_time(model: Model, end: datetime | None, window: Window) -> Timeline:
    if end is None:
        return ()
    if not model.kind.is_incremental:
        return build_timeline(SINCE_EPOCH, end)
    start = model.cron.cut(window.start) if window.start else model.cron.cut(end - timedelta(seconds=1))
    return build_timeline(max(start, model.schedule.start) if model.schedule.start else start, end)
