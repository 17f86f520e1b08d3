"""Where a plan meets the readers of other projects: who reads what it takes or changes. Pure.

Two kinds of result: a `ReadingProject` has all names, and a `ReaderSummary` only those that may be shown. The second is
what records, comments, checks and pages get.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mergeplan.bot.readers.publication import TableReader
from mergeplan.planner.contract.plan import ModelChange, PlanView

KEEPING = frozenset({"non_breaking", "indirect_non_breaking", "metadata", "equivalent"})  # what readers see
WITHOUT_VIEW = frozenset({"EMBEDDED", "EXTERNAL"})
NAMED_MAX = 50  # readers of one project that a summary names
OWNERS_MAX = 10
COLUMNS_MAX = 100  # of one reader
PROJECTS_MAX = 100


@dataclass(frozen=True)
class TableChange:
    """What a plan does to a view of prod: it goes, loses columns, or shows other values or rows."""

    model: str
    table: str  # the view's full name
    goes: bool = False
    every: bool = False  # rows change, and so every column
    removed: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    grows: bool = False  # a column comes: a name without a table may be of it now


@dataclass(frozen=True)
class Reading:
    """A reader of another project with the changed columns of a model that it reads; () where it may read any.

    `takes`: the model or one of its columns goes. `keeps`: none of its columns change.
    """

    reader: str
    model: str
    columns: tuple[str, ...] = ()
    takes: bool = False
    owner: str = ""
    is_exposure: bool = False
    keeps: bool = False


@dataclass(frozen=True)
class ReadingProject:
    """Another project that reads what a plan changes; `approvers` are those of each reader, () where it has none.

    `unaffected` are its models that read such a table, but none of the columns that change.
    """

    name: str
    is_shown: bool
    readings: tuple[Reading, ...]
    unaffected: tuple[Reading, ...] = ()
    approvers: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ReaderSummary:
    """What of another project's readers may be shown: without a `name` their number and their owners alone."""

    name: str = ""
    models: int = 0
    exposures: int = 0
    owners: tuple[str, ...] = ()
    takes: bool = False
    readings: tuple[Reading, ...] = ()


def find_changes(plan: PlanView, views: Mapping[str, str]) -> tuple[TableChange, ...]:
    """Return the changes of prod's views that their readers notice.

    `views` are those that prod shows, by model: a pull request that names a table of somebody else's changes none.
    """
    changes = (_find_change(model, views[model.name]) for model in plan.models if model.name in views)
    return tuple(change for change in changes if change is not None)


def _find_change(model: ModelChange, table: str) -> TableChange | None:
    if model.change == "removed" or model.kind.upper() in WITHOUT_VIEW:
        return TableChange(model.name, table, goes=True, every=True)
    columns = model.columns
    removed, altered = _lower(columns.removed), _lower(columns.altered)
    # A change whose columns are not known may be of any, of a view too, which computes nothing.
    is_unnamed = model.category not in KEEPING and not (removed or altered or columns.added)
    every = columns.every or is_unnamed or model.change in ("added", "restated")
    if model.skipped and not removed:
        return None
    if not (every or removed or altered):
        return None
    return TableChange(model.name, table, False, every, removed, altered, grows=bool(columns.added))


def _lower(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def meet_readers(
    changes: Sequence[TableChange], reads: Mapping[str, Sequence[TableReader]]
) -> tuple[tuple[Reading, TableReader], ...]:
    pairs = [
        (reading, reader)
        for change in changes
        for reader in reads.get(change.table, ())
        if (reading := _meet_reader(change, reader)) is not None
    ]
    return tuple(sorted(pairs, key=lambda pair: not pair[0].takes))


def _meet_reader(change: TableChange, reader: TableReader) -> Reading | None:
    changed = (*change.removed, *change.altered)
    if reader.columns is None:
        takes = change.goes or bool(change.removed)
        return Reading(reader.name, change.model, (), takes, reader.owner, reader.is_exposure)
    columns = tuple(name for name in reader.columns if change.every or name in changed)
    takes = change.goes or any(name in reader.columns for name in change.removed)
    if not (columns or change.every):
        return None
    return Reading(reader.name, change.model, columns, takes, reader.owner, reader.is_exposure)


def find_unaffected(changes: Sequence[TableChange], reads: Mapping[str, Sequence[TableReader]]) -> tuple[Reading, ...]:
    """Return the models that read changed tables, but nothing that changes there."""
    concerned = {reading.reader for reading, _ in meet_readers(changes, reads)}
    concerned |= {reader.name for change in changes if change.grows for reader in reads.get(change.table, ())}
    return tuple(
        Reading(reader.name, change.model, owner=reader.owner, keeps=True)
        for change in changes
        for reader in reads.get(change.table, ())
        if not reader.is_exposure and reader.name not in concerned
    )


def summarize_readers(project: ReadingProject) -> ReaderSummary:
    readings = project.readings
    owners = dict.fromkeys(reading.owner for reading in readings if reading.owner)
    return ReaderSummary(
        name=project.name if project.is_shown else "",
        models=len({reading.reader for reading in readings if not reading.is_exposure}),
        exposures=len({reading.reader for reading in readings if reading.is_exposure}),
        owners=tuple(sorted(owners))[:OWNERS_MAX],
        takes=any(reading.takes for reading in readings),
        readings=tuple(map(_clip_columns, (*readings, *project.unaffected)[:NAMED_MAX])) if project.is_shown else (),
    )


def _clip_columns(reading: Reading) -> Reading:
    return replace(reading, columns=reading.columns[:COLUMNS_MAX])


def sort_summaries(summaries: Iterable[ReaderSummary]) -> tuple[ReaderSummary, ...]:
    """Return the summaries with losses first; the order tells nothing of a name that is not shown."""
    order = sorted(summaries, key=lambda one: (not one.takes, not one.name, one.name, one.owners, one.models))
    return tuple(order[:PROJECTS_MAX])
