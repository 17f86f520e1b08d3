"""What a table is made from: a query, and what the tables hold that it reads.

A query without chance in it returns the same rows while nobody writes any of these tables. So a table that is due, and
was filled by the same query over the same tables, holds its rows already.
"""

from __future__ import annotations

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.apply.backfill.work import Work
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore


def inputs_of(layout: Layout, work: Work, todo: tuple[Interval, ...], store: StateStore) -> str:
    """A digest of what the table would be made from now; '' where its rows may follow from more than that.

    The text of the query has dates and physical names in it: another date, or another version of a table, is another
    query.
    """
    snapshot = work.snapshot
    if work.copies or work.until or work.late or len(todo) != 1 or not _follows_from_tables(snapshot):
        return ""
    tables = source_tables(layout, snapshot.name)
    marks = store.contents.mark_tables({*tables, snapshot.table}) if tables is not None else None
    if marks is None:
        return ""
    read = (part for name in sorted(tables or ()) for part in (name, marks[name]))
    return digest("inputs", layout.query(snapshot.model, todo[0]), *read)[:32]


def source_tables(layout: Layout, name: str) -> frozenset[str] | None:
    """The physical tables whose rows a model's query reads, through views and embedded models; None when it reads
    anything else, which others may write."""
    tables: set[str] = set()
    for parent in layout.snapshots[name].model.depends_on:
        snapshot = layout.snapshots.get(parent)
        if snapshot is None or snapshot.kind.is_external:
            return None
        if snapshot.kind.is_stored:
            tables.add(snapshot.table)
            continue
        through = source_tables(layout, parent)
        if through is None:
            return None
        tables |= through
    return frozenset(tables)


def _follows_from_tables(snapshot: Snapshot) -> bool:
    """True when a query makes all of the table's rows, and neither chance, a clock, code nor a statement has a part."""
    model, meaning = snapshot.model, snapshot.meaning
    if snapshot.kind.fill is not Fill.WHOLE or model.python or model.materialization:
        return False
    if model.pre_statements or model.post_statements:
        return False
    return meaning is not None and not meaning.volatile and not meaning.volatile_rows
