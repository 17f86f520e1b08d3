"""The readers of other projects in what a plan changes, and what of them its pull request may show.

Neither a plan nor a pull request's text decides what is shown: views are those that prod publishes, and the reading
project's own configuration in its prod says which repositories may see its names. Without that, a private repository
sees a number and the owners, and a public one nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from mergeplan.bot.context import BotContext
from mergeplan.bot.inbox.publications import ProjectReads
from mergeplan.bot.projects import add_label, label_of, repository_of
from mergeplan.bot.readers.impact import (
    ReadingProject,
    TableChange,
    find_changes,
    find_unaffected,
    meet_readers,
    sort_summaries,
    summarize_readers,
)
from mergeplan.bot.readers.other_services import is_elsewhere, name_of
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.planner.contract.plan import PlanView


def find_reading_projects(context: BotContext, project: str, plan: PlanView) -> tuple[ReadingProject, ...]:
    """Return the projects of the same owner that read what a plan changes and of which something may be shown.

    Raise ForgeFailed or ForgePaused while GitHub does not say who may see what.
    """
    publications = context.inbox.publications
    changes = find_changes(plan, publications.views(project))
    tables = {change.table for change in changes}
    reads = publications.find_reads(tables, but=project) if tables else ()
    return tuple(_list_projects(context, project, changes, reads))


def _list_projects(
    context: BotContext, project: str, changes: tuple[TableChange, ...], reads: tuple[ProjectReads, ...]
) -> Iterator[ReadingProject]:
    mine = context.forge.live_name(project) if reads else ""
    for project_reads in reads:
        pairs = meet_readers(changes, project_reads.readers)
        name, is_shown = _find_access(context, project, mine, project_reads) if pairs else ("", False)
        if name:
            readings, readers = zip(*pairs, strict=True)
            unaffected = find_unaffected(changes, project_reads.readers)
            yield ReadingProject(name, is_shown, readings, unaffected, tuple(reader.approvers for reader in readers))


def _find_access(context: BotContext, project: str, mine: str, reads: ProjectReads) -> tuple[str, bool]:
    """Return the name of a reading project, '' if nothing of it may be shown, and whether its names may be.

    `mine` is the present name of the repository that asks.
    """
    label = label_of(reads.project)
    stored_name = context.inbox.repositories.find(repository_of(reads.project)).name
    if repository_of(reads.project) == repository_of(project):
        return label or stored_name, True  # who reads the one reads the other
    if not mine or _owner(mine) != _owner(name_of(stored_name)):
        return "", False  # GitHub is not asked: no other owner can delay this one
    other = name_of(stored_name) if is_elsewhere(reads.project) else context.forge.live_name(reads.project)
    if _owner(mine) != _owner(other):
        return "", False
    is_shown = mine.lower() in reads.shown_to
    if not is_shown and context.forge.repository(project).is_public():
        return "", False
    return add_label(other, label), is_shown


def _owner(repository: str) -> str:
    return repository.partition("/")[0].lower()


def note_readers(context: BotContext, record: PullRecord) -> None:
    """Store what of other projects' readers a planned pull request may show; what was merged keeps what it showed."""
    plan = record.outcome.plan if record.outcome and record.state is PullState.PLANNED else None
    if plan is None and record.state is not PullState.FAILED:
        return
    projects = find_reading_projects(context, record.repository, plan) if plan else ()
    readers = sort_summaries(map(summarize_readers, projects))
    if readers != record.nearby.readers:
        context.inbox.pulls.update(
            record.repository,
            record.number,
            lambda record: replace(record, nearby=replace(record.nearby, readers=readers)),
        )
