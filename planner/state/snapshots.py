"""Snapshots by id: written once, never changed."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any, cast

import sqlalchemy as sa

from mergeplan.planner import serial
from mergeplan.planner.cache.store import NO_CACHE, Cache
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.deferred import defer, is_deferred
from mergeplan.planner.errors import RequestError
from mergeplan.planner.fingerprint import Fingerprint, digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import DEFAULT, SESSION_CATALOG
from mergeplan.planner.serial import Json
from mergeplan.planner.snapshot.snapshot import Meaning, ReadMeaning, Snapshot
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import Database, Transaction, split_chunks

_INDEXED = ("version", "forced", "stored", "is_reordered")


class Snapshots:
    """The snapshots of one project; those of open models are read in part from an index of this machine."""

    def __init__(self, database: Database, cache: Cache = NO_CACHE) -> None:
        self._database, self._cache = database, cache
        self._read_before: dict[str, Snapshot] = {}  # id -> snapshot: what an id stands for never changes
        self._whole: dict[str, Snapshot] = {}  # those that were read from their rows
        self._key = digest("snapshots 1", reader_version(), database.name)

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
        new_ids = set(ids) - self._read_before.keys()
        if new_ids:
            self._read_before |= self._read_index(new_ids)
            self._read_rows(tx, new_ids - self._read_before.keys())
        return {id: self._read_before[id] for id in ids}

    def read_whole(self, snapshots: Iterable[Snapshot]) -> None:
        """Read the rest of these snapshots in one question, because it will be needed."""
        deferred = {id(snapshot) for snapshot in snapshots if is_deferred(snapshot)}
        ids = {row_id for row_id, snapshot in self._read_before.items() if id(snapshot) in deferred}
        if ids:
            with self._database.reading() as tx:
                self._read_rows(tx, ids)

    def _read_rows(self, tx: Transaction, ids: Collection[str]) -> None:
        entries: dict[str, Json] = {}
        for chunk in split_chunks(sorted(ids)):
            for row in tx.execute(_select_snapshots(tx.project).where(t.snapshots.c.id.in_(chunk))).all():
                if deferred := self._read_before.get(row.id):
                    self._whole[row.id] = _build_snapshot(row, deferred.model, self._database.decode)
                    continue
                model = serial.decode_line(Model, row.model)
                self._whole[row.id] = snapshot = _build_snapshot(row, _as_named(model), self._database.decode)
                self._read_before[row.id] = snapshot
                text_digest = serial.line_digest(row.model) if snapshot.model is model else ""  # which finds no model
                entries[row.id] = [text_digest, *(getattr(snapshot, name) for name in _INDEXED)]
        if entries:
            self._index |= entries
            if len(self._index) > 3 * len(self._read_before) + 1000:  # most of them are shown nowhere any more
                self._index = {id: entry for id, entry in self._index.items() if id in self._read_before}
            self._cache.put({self._key: json.dumps(self._index, separators=(",", ":"))})

    def _read_index(self, ids: Iterable[str]) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots that the index has of models that this process has."""
        for row_id in ids:
            text_digest, *values = self._index.get(row_id) or [""]
            model = serial.find_decoded(Model, text_digest)
            if model is not None:
                facts = {"model": model, **dict(zip(_INDEXED, values, strict=True))}
                yield row_id, defer(Snapshot, facts, partial(self._complete, row_id))

    def _complete(self, row_id: str) -> Snapshot:
        if row_id not in self._whole:
            with self._database.reading() as tx:
                self._read_rows(tx, [row_id])
        if row_id not in self._whole:
            raise RequestError("The state no longer has a snapshot that it had before.", hint="Run this again.")
        return self._whole[row_id]

    @cached_property
    def _index(self) -> dict[str, Json]:
        """Row id -> the digest of its model's text, and the values of `_INDEXED`."""
        with suppress(ValueError, TypeError):
            return {**json.loads(self._cache.get([self._key]).get(self._key, "{}"))}
        return {}


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
        "model": serial.encode_json(snapshot.model),
        "parts": serial.encode_json(snapshot.fingerprint),
        "meaning": serial.encode_json(snapshot.meaning),
    }
    stored = {"stored": snapshot.stored} if snapshot.stored else {}  # without it an id stays what it always was
    return {"id": digest(serial.canonical_json({**row, **stored}))[:32], "stored": snapshot.stored or None, **row}


@lru_cache(maxsize=8)
def _select_snapshots(project: str) -> sa.Select[Any]:
    texts = ("model", "meaning")
    columns = (sa.cast(c, sa.Text).label(c.name) if c.name in texts else c for c in t.snapshots.c)
    return sa.select(*columns).where(t.snapshots.c.project == project)


def _build_snapshot(row: sa.Row[Any], model: Model, decode: Callable[[ReadMeaning], Meaning | None]) -> Snapshot:
    columns = None if row.columns is None else tuple(row.columns)
    fingerprint = serial.decode_json(Fingerprint, row.parts)
    # A plan asks for the meanings of few: of what changed, and of what that reads.
    meaning = cast("Meaning | None", partial(decode, partial(_decode_meaning, row.meaning)) if row.meaning else None)
    return Snapshot(model, fingerprint, row.version, columns, row.forced, meaning, row.stored or "")


def _decode_meaning(text: str) -> Meaning | None:
    data = json.loads(text)
    return None if data is None else serial.decode_json(Meaning, data)


def _as_named(model: Model) -> Model:
    """Return a model whose texts name tables as now: an old state may have `spark_catalog.` before names."""
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
    statements = replace(model.statements, pre_statements=pre_statements, post_statements=post_statements)
    return replace(model, written=replace(model.written, text=text), statements=statements)
