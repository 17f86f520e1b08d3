"""Snapshots as they are kept: their meanings are read where somebody asks for them."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.deferred import is_deferred
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


def read_by_index(file: Path, cache: Path) -> tuple[list[str], list[Snapshot]]:
    """Return the ids whose rows are read by a new process, and all snapshots."""
    ids: list[str] = []
    with closing(StateStore(f"sqlite:///{file}", cache=Cache(cache))) as store:
        read_rows = store.snapshots._read_rows
        store.snapshots._read_rows = lambda tx, new: (ids.extend(new), read_rows(tx, new))[1]  # type: ignore[method-assign, assignment]
        shown = sorted(store.snapshots.all(), key=lambda one: one.name)
        assert [(one.name, one.version, one.table, one.forced) for one in shown]
        return sorted(ids), shown


def test_rows_of_models_that_are_open_are_not_read(file: Path, tmp_path: Path) -> None:
    first_ids, models_stay_open = read_by_index(file, tmp_path / "cache")
    second_ids, _ = read_by_index(file, tmp_path / "cache")

    assert (len(first_ids), second_ids) == (3, [])
    with closing(StateStore(f"sqlite:///{file}", cache=Cache(tmp_path / "cache"))) as store:
        shown = sorted(store.snapshots.all(), key=lambda one: one.name)
        assert all(map(is_deferred, shown))
        assert [one.model for one in shown] == [one.model for one in models_stay_open]
        assert shown == models_stay_open


def test_rows_of_other_models_are_read_whatever_the_index_says(file: Path, tmp_path: Path) -> None:
    read_by_index(file, tmp_path / "cache")
    gc.collect()  # no model is open any more

    ids, shown = read_by_index(file, tmp_path / "cache")

    assert (len(ids), any(map(is_deferred, shown))) == (3, False)


def test_an_index_keeps_what_another_environment_shows(file: Path, tmp_path: Path) -> None:
    _, models_stay_open = read_by_index(file, tmp_path / "cache")
    with closing(StateStore(f"sqlite:///{file}", cache=Cache(tmp_path / "cache"))) as store:
        store.snapshots.keep([new := replace(snapshot("s.new"), meaning=MEANINGS[1])])
        (new_id,) = set(_list_ids(file)) - store.snapshots._index.keys()
        assert store.snapshots.get_by_id([new_id]) == {new_id: new}

    ids, _ = read_by_index(file, tmp_path / "cache")

    assert (ids in ([], [new_id]), models_stay_open[0].name) == (True, "s.m0")


def _list_ids(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [id for (id,) in connection.execute("SELECT id FROM snapshots")]


def test_the_rest_of_snapshots_is_read_in_one_question(file: Path, tmp_path: Path) -> None:
    _, models_stay_open = read_by_index(file, tmp_path / "cache")
    with closing(StateStore(f"sqlite:///{file}", cache=Cache(tmp_path / "cache"))) as store:
        shown = store.snapshots.all()
        store.snapshots.read_whole(shown)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("DELETE FROM snapshots")

        assert sorted(shown, key=lambda one: one.name) == models_stay_open


def test_a_snapshot_that_went_before_its_rest_was_read_is_a_sentence(file: Path, tmp_path: Path) -> None:
    _, models_stay_open = read_by_index(file, tmp_path / "cache")
    with closing(StateStore(f"sqlite:///{file}", cache=Cache(tmp_path / "cache"))) as store:
        shown = store.snapshots.all()
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("DELETE FROM snapshots")

        with pytest.raises(RequestError, match="no longer has a snapshot"):
            _ = shown[0].fingerprint
    assert models_stay_open
