"""Snapshots by id: written once, never changed."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

import sqlalchemy as sa

from mergeplan.planner.fingerprint import Fingerprint, digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import DEFAULT, SESSION_CATALOG
from mergeplan.planner.serial import canonical_json, decode_json, decode_line, encode_json
from mergeplan.planner.snapshot.snapshot import Meaning, ReadMeaning, Snapshot
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import Database, Transaction, split_chunks


class Snapshots:
    """The snapshots that one project's environments show and have shown."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read_before: dict[str, Snapshot] = {}  # id -> snapshot: what an id stands for never changes

    def get_by_id(self, ids: Collection[str]) -> Mapping[str, Snapshot]:
        with self._database.reading() as tx:
            return self.read(tx, ids)

    def all(self) -> tuple[Snapshot, ...]:
        with self._database.reading() as tx:
            ids = [row.id for row in tx.execute(sa.select(t.snapshots.c.id).where(tx.own(t.snapshots)))]
            return tuple(self.read(tx, ids).values())

    def keep(self, snapshots: Collection[Snapshot]) -> None:
        """Remember what tables are made of before any environment shows them; not one that an override kept."""
        with self._database.writing() as tx:
            keep_snapshots(tx, {snapshot.name: snapshot for snapshot in snapshots if not snapshot.forced})

    def tables_with_drift(self) -> frozenset[str]:
        """Return the tables that an override let some environment keep while what they read changed."""
        with self._database.reading() as tx:
            forced = tx.execute(tx.select(t.snapshots).where(t.snapshots.c.forced))
            return frozenset(row.stored or DEFAULT.table(row.name, row.version) for row in forced)

    def read(self, tx: Transaction, ids: Collection[str]) -> dict[str, Snapshot]:
        for chunk in split_chunks(sorted(set(ids) - self._read_before.keys())):
            for row in tx.execute(_select_snapshots(tx.project).where(t.snapshots.c.id.in_(chunk))).all():
                self._read_before[row.id] = _build_snapshot(row, self._database.decode)
        return {id: self._read_before[id] for id in ids}


def keep_snapshots(tx: Transaction, snapshots: Mapping[str, Snapshot]) -> dict[str, str]:
    """Write the snapshots that are not there yet; model -> id."""
    rows = {name: _build_row(snapshot) for name, snapshot in snapshots.items()}
    tx.put(t.snapshots, list(rows.values()), update=False)
    return {name: str(row["id"]) for name, row in rows.items()}


def _build_row(snapshot: Snapshot) -> dict[str, object]:
    row: dict[str, object] = {
        "name": snapshot.name,
        "fingerprint": snapshot.fingerprint.text,
        "version": snapshot.version,
        "forced": snapshot.forced,
        "columns": None if snapshot.columns is None else list(snapshot.columns),
        "model": encode_json(snapshot.model),
        "parts": encode_json(snapshot.fingerprint),
        "meaning": encode_json(snapshot.meaning),
    }
    stored = {"stored": snapshot.stored} if snapshot.stored else {}  # without it an id stays what it always was
    return {"id": digest(canonical_json({**row, **stored}))[:32], "stored": snapshot.stored or None, **row}


@lru_cache(maxsize=8)
def _select_snapshots(project: str) -> sa.Select[Any]:
    """Return the project's snapshots, with their models and meanings as texts."""
    texts = ("model", "meaning")
    columns = (sa.cast(c, sa.Text).label(c.name) if c.name in texts else c for c in t.snapshots.c)
    return sa.select(*columns).where(t.snapshots.c.project == project)


def _build_snapshot(row: sa.Row[Any], decode: Callable[[ReadMeaning], Meaning | None]) -> Snapshot:
    columns = None if row.columns is None else tuple(row.columns)
    fingerprint = decode_json(Fingerprint, row.parts)
    model = _as_named(decode_line(Model, row.model))
    # A plan asks for the meanings of few: of what changed, and of what that reads.
    meaning = cast("Meaning | None", partial(decode, partial(_decode_meaning, row.meaning)) if row.meaning else None)
    return Snapshot(model, fingerprint, row.version, columns, row.forced, meaning, row.stored or "")


def _decode_meaning(text: str) -> Meaning | None:
    data = json.loads(text)
    return None if data is None else decode_json(Meaning, data)


def _as_named(model: Model) -> Model:
    """Return a model whose texts call each table by its name.

    A state of before names had catalogs may have `spark_catalog.` before names in the default catalog.
    """
    if any(name.startswith(f"{SESSION_CATALOG}.") for name in (model.name, *model.depends_on)):
        return model
    written = (model.written.text, *(statement.text for statement in model.statements.around))
    if not any(SESSION_CATALOG in text.lower() for text in written):
        return model
    pre_statements, post_statements = (
        tuple(
            replace(statement, text="") if SESSION_CATALOG in statement.text.lower() else statement
            for statement in statements
        )
        for statements in (model.statements.pre_statements, model.statements.post_statements)
    )
    text = "" if SESSION_CATALOG in model.written.text.lower() else model.written.text
    return replace(
        model,
        written=replace(model.written, text=text),
        statements=replace(model.statements, pre_statements=pre_statements, post_statements=post_statements),
    )
