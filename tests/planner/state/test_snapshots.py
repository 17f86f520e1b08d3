"""Snapshots as they are kept: their meanings are read where somebody asks for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot
from mergeplan.planner.state import snapshots
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import snapshot

MEANINGS = (None, Meaning("rows", (("id", "1"),)), Meaning("r", (), frozenset("ab"), True, keys=(("id",),)))


def kept(store: StateStore) -> list[Snapshot]:
    """One snapshot of each meaning, in a store."""
    shown = [replace(snapshot(f"s.m{number}"), meaning=meaning) for number, meaning in enumerate(MEANINGS)]
    store.snapshots.keep(shown)
    return shown


@pytest.mark.usefixtures("state_url")  # on both databases
def test_a_snapshot_comes_back_with_its_meaning(store: StateStore) -> None:
    shown = kept(store)

    assert sorted(store.snapshots.all(), key=lambda one: one.name) == shown


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    with closing(StateStore(f"sqlite:///{tmp_path}/state.db")) as store:
        kept(store)
    yield tmp_path / "state.db"


def test_no_meaning_is_read_that_nobody_asks_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    decode = snapshots._decode_meaning
    monkeypatch.setattr(snapshots, "_decode_meaning", lambda text: (read.append(text), decode(text))[1])
    with closing(StateStore(f"sqlite:///{file}")) as store:
        one, two, three = sorted(store.snapshots.all(), key=lambda kept: kept.name)

    assert [one.table, two.kind.is_stored, three.version, read] == [one.table, True, "v1", []]
    assert (two.meaning, two.raw, len(read)) == (MEANINGS[1], two.raw, 1)


def test_a_damaged_meaning_is_a_sentence(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE snapshots SET meaning = '{\"rows\": 7}' WHERE meaning IS NOT NULL")
    with closing(StateStore(f"sqlite:///{file}")) as store:
        damaged = max(store.snapshots.all(), key=lambda kept: kept.name)

    with pytest.raises(RequestError, match="is damaged"):
        _ = damaged.meaning
