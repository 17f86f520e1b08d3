"""Texts about what a rollback would do."""

from collections.abc import Iterator
from datetime import timedelta

from mergeplan.planner.apply.promotion.rollback import Behind, MovedView, RollbackPlan
from mergeplan.planner.intervals import Timeline, subtract_intervals
from mergeplan.planner.wording import count_noun


def rollback_text(plan: RollbackPlan) -> str:
    name, until = plan.old.name, f"{plan.until:%Y-%m-%d %H:%M:%S} UTC"
    lines = [
        f"`{name}` is at revision {plan.old.revision} and would show revision {plan.target.revision} again, "
        f"which it showed until {until}."
    ]
    lines += ["", f"{count_noun(len(plan.views), 'view')} would move:" if plan.views else "No view would move."]
    lines += [line for view in plan.views for line in _view_lines(view)]
    if plan.behind:
        lines += ["", f"{count_noun(len(plan.behind), 'table')} would be behind:"]
        lines += [f"  {gap.shown.name} {behind_text(name, gap)}" for gap in plan.behind]
    lines += ["", "Taken back:"]
    for row in plan.since:
        parts = (str(row.action).replace("_", " "), f"{row.at:%Y-%m-%d %H:%M:%S}", row.who, row.note)
        lines.append("  ".join((f"  revision {row.revision}", *(part for part in parts if part))))
    return "\n".join(lines)


def behind_text(environment: str, behind: Behind) -> str:
    run = f"`mergeplan run {environment}`"
    if not behind.shown.kind.is_incremental:
        next_run = f"{run} computes it again" if behind.due else "no run is due"
        return f"{'; '.join((*_as_of(behind), next_run))}."
    parts = (
        [f"lacks up-to-date rows of {_timeline_text(behind.lacks)}, which the later table holds"]
        if behind.lacks
        else ["lacks time"]
    )
    if behind.due:
        parts.append(f"{run} computes {_timeline_text(behind.due)}")
    if remaining_time := subtract_intervals(behind.lacks, behind.due):
        parts.append(f"no run is due for {_timeline_text(remaining_time)}")
    return f"{'; '.join(parts)}."


def _as_of(behind: Behind) -> Iterator[str]:
    if not behind.held:
        # not empty: a restatement removes the loaded time of earlier revisions' tables, but no rows
        yield "has no rows that are up to date"
    elif behind.lacks:
        earlier_end, later_end = (timeline[-1].end - timedelta(seconds=1) for timeline in (behind.held, behind.lacks))
        yield f"is as of {earlier_end:%Y-%m-%d}, the later table as of {later_end:%Y-%m-%d}"
    else:
        yield "is late"


def _view_lines(view: MovedView) -> tuple[str, ...]:
    """Return a view and its tables, each on a line: names of tables are long."""
    if view.before is None:
        return f"  {view.name} comes back:", f"    to   {view.after}"
    if view.after is None:
        return (f"  {view.name} goes away",)
    if view.before == view.after:
        return (f"  {view.name} keeps its table; only its texts change",)
    return f"  {view.name}:", f"    from {view.before}", f"    to   {view.after}"


def _timeline_text(timeline: Timeline) -> str:
    return ", ".join(f"[{interval}]" for interval in timeline)
