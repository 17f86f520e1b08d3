"""The options of `--restate-copy`: which models are computed again in new tables, and which no longer are."""

from collections.abc import Mapping
from datetime import datetime

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import Changed, select, strip_default_catalog
from mergeplan.planner.plan.change import Days
from mergeplan.planner.plan.restatement import add_outer_tables, find_computed
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.options import RESET, PlanOptions
from mergeplan.planner.session.workspace import Workspace


def resolve_copy(text: str, work: Workspace) -> str:
    """Return `selector=start..end` with its moments in ISO 8601, '' where unbounded; raise RequestError."""
    selector, _, days = text.partition("=")
    qualified = strip_default_catalog(selector, work.project.catalogs.default)
    if selector and days == RESET:
        return f"{qualified}={RESET}"
    first, dots, last = days.partition("..")
    if not selector or (days and not dots):
        hint = "Write MODEL, MODEL=2026-01-01..2026-01-31, or MODEL=reset to take that back."
        raise RequestError(f"`{text}` names no days.", hint=hint)
    start, end = parse_moment(first or None, work.now), parse_moment(last or None, work.now, end=True)
    if start and end and start >= end:
        raise RequestError(f"The end `{last}` does not come after the start `{first}`.")
    return f"{qualified}={start.isoformat() if start else ''}..{end.isoformat() if end else ''}"


def read_copies(
    options: PlanOptions, models: Mapping[str, Model], find_changed: Changed
) -> tuple[dict[str, Days], tuple[str, ...]]:
    """Return the days to compute again by model, and a warning for each selector from which nothing is computed.

    The readers of a table that is never computed stand for it.
    """
    if not options.restate_copy:
        return {}, ()
    graph, copies, warnings = add_outer_tables(models), dict[str, Days](), list[str]()
    for selector, days in _split_copies(options):
        if days == RESET:
            continue
        start, end = (datetime.fromisoformat(moment) if moment else None for moment in days.split(".."))
        try:
            names = find_computed(graph, select(graph, [selector], find_changed))
        except RequestError as error:
            warnings.append(f"Nothing is restated in a copy: {error.message}")
            continue
        if not names:
            warnings.append(f"Nothing is restated in a copy: no table is computed from `{selector}`.")
        copies |= dict.fromkeys(names, Days(start, end))
    return copies, tuple(warnings)


def find_taken_back(options: PlanOptions, models: Mapping[str, Model], find_changed: Changed) -> frozenset[str]:
    """Return the models whose restatement in a copy is taken back; a model that is gone is known by its name."""
    selectors = [selector for selector, days in _split_copies(options) if days == RESET]
    if not selectors:
        return frozenset()
    names, graph = set(selectors), add_outer_tables(models)
    for selector in selectors:
        try:
            names |= find_computed(graph, select(graph, [selector], find_changed))
        except RequestError:
            continue
    return frozenset(names)


def _split_copies(options: PlanOptions) -> tuple[tuple[str, str], ...]:
    return tuple((selector, days) for selector, _, days in (text.partition("=") for text in options.restate_copy))
