"""Pull requests of other projects that a change of prod, or of what prod publishes, concerns.

Each is planned again at most once for a promotion, and none of their plans promotes anything: there is no loop.
"""

from collections.abc import Collection, Iterable
from functools import partial

import structlog

from mergeplan.bot.context import BotContext, now_text
from mergeplan.bot.projects import repository_of
from mergeplan.bot.readers.impact import find_changes, meet_readers
from mergeplan.bot.readers.other_services import name_of
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.transitions.planning import note_moved_sources
from mergeplan.planner.contract.plan import ModelChange, PlanView

log = structlog.get_logger(__name__)
PULLS_MAX = 20  # of one project, the newest: what is older is planned when it is touched
PLANNED = (PullState.PLANNING, PullState.PLANNED, PullState.FAILED)


def replan_readers(context: BotContext, project: str, plan: PlanView | None) -> None:
    """Request new plans of open pull requests that read what a promotion changed.

    A failed one of a project that reads the table may have waited for a column that came.
    """
    views = context.inbox.publications.views(project) if plan else {}
    changes = find_changes(plan, views) if plan else ()
    grown = {
        views[model.name] for model in (plan.models if plan else ()) if model.name in views and model.columns.added
    }
    tables = grown | {change.table for change in changes}
    for reads in context.inbox.publications.find_reads(tables, but=project) if tables else ():
        if _has_same_owner(context, project, reads.project):
            readers = {reading.reader for reading, _ in meet_readers(changes, reads.readers)}
            _replan_pulls(context, reads.project, readers, {change.table for change in changes})


def _replan_pulls(context: BotContext, project: str, readers: Collection[str], tables: Collection[str]) -> None:
    pulls = context.inbox.pulls.filter_by_state(project, *PLANNED)
    concerned = [pull for pull in pulls if _is_concerned(pull, readers, tables)][-PULLS_MAX:]
    for pull in concerned:
        note = partial(note_moved_sources, tables=_find_computed_from(pull, tables), at=now_text())
        context.inbox.pulls.update(project, pull.number, note)
        context.inbox.queue.wake(project, pull.number)
    if concerned:
        log.info("readers_planned_again", repository=project, pull_requests=[pull.number for pull in concerned])


def _is_concerned(pull: PullRecord, readers: Collection[str], tables: Collection[str]) -> bool:
    """Return True for a failed plan, and for one with a reader or with a model that reads such a table."""
    plan = pull.outcome.plan if pull.outcome else None
    if pull.state is PullState.FAILED or (plan is None and readers):
        return True
    models = plan.models if plan else ()
    return bool(_find_parents(models, tables)) or any(model.name in readers for model in models)


def _find_computed_from(pull: PullRecord, tables: Collection[str]) -> tuple[str, ...]:
    """Return those of the tables, as the project names them, from which it has computed tables of its own."""
    plan = pull.outcome.plan if pull.outcome and pull.outcome.is_built else None
    return _find_parents((model for model in plan.models if model.recomputed), tables) if plan else ()


def _find_parents(models: Iterable[ModelChange], tables: Collection[str]) -> tuple[str, ...]:
    parents = dict.fromkeys(parent for model in models for parent in model.parents)
    return tuple(
        parent for parent in parents if any(table == parent or table.endswith(f".{parent}") for table in tables)
    )


def show_readers(context: BotContext, project: str, tables: Collection[str]) -> None:
    """Have open pull requests of the projects that show these tables look again at who reads them."""
    keys = context.inbox.prods.list_keys()
    neighbours = (key for key in keys if key != project and _has_same_owner(context, project, key))
    for shown_project in neighbours:
        if set(tables) & set(context.inbox.publications.views(shown_project).values()):
            for pull in context.inbox.pulls.filter_by_state(shown_project, PullState.PLANNED)[-PULLS_MAX:]:
                context.inbox.queue.wake(shown_project, pull.number)


def _has_same_owner(context: BotContext, *projects: str) -> bool:
    names = (context.inbox.repositories.find(repository_of(project)).name for project in projects)
    return len({name_of(name).partition("/")[0].lower() for name in names}) == 1
