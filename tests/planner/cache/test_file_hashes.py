"""A file is read again when it may have changed, and not when it cannot have."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from mergeplan.planner.cache import file_hashes
from mergeplan.planner.cache.file_hashes import FileHashes
from mergeplan.planner.cache.store import Cache


@pytest.fixture
def settle_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every edit counts as long ago."""
    monkeypatch.setattr(file_hashes, "TICK", -(10**18))


def hash_file(root: Path, cache: Path) -> str:
    hashes = FileHashes(Cache(cache), root)
    digest = hashes.hash_file("a.sql")
    hashes.save()
    return digest


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.usefixtures("settle_files")
def test_a_file_that_looks_the_same_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1")
    assert hash_file(tmp_path, tmp_path / "cache") == sha("SELECT 1")
    monkeypatch.setattr(FileHashes, "read", lambda *_: pytest.fail("it was read"))

    assert hash_file(tmp_path, tmp_path / "cache") == sha("SELECT 1")


@pytest.mark.usefixtures("settle_files")
def test_an_edit_of_the_same_length_whose_time_is_set_back_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("SELECT 1")
    before = file.stat()
    hash_file(tmp_path, tmp_path / "cache")
    time.sleep(0.02)  # a clock tick of the file system
    file.write_text("SELECT 2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert hash_file(tmp_path, tmp_path / "cache") == sha("SELECT 2")


def test_a_file_that_was_only_just_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1")
    hash_file(tmp_path, tmp_path / "cache")
    read: list[str] = []

    def read_anew(_: FileHashes, name: str) -> tuple[bytes, str]:
        read.append(name)
        return b"", "anew"

    monkeypatch.setattr(FileHashes, "read", read_anew)

    assert hash_file(tmp_path, tmp_path / "cache") == "anew"
    assert read == ["a.sql"]


@pytest.mark.usefixtures("settle_files")
def test_files_that_nobody_asked_for_stay_known_while_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.sql", "b.sql", "c.sql"):
        (tmp_path / name).write_text(name)
    whole = FileHashes(Cache(tmp_path / "cache"), tmp_path)
    for name in ("a.sql", "b.sql", "c.sql"):
        whole.hash_file(name)
    whole.save()

    (tmp_path / "a.sql").write_text("SELECT 2")
    (tmp_path / "c.sql").unlink()
    assert hash_file(tmp_path, tmp_path / "cache") == sha("SELECT 2")

    again = FileHashes(Cache(tmp_path / "cache"), tmp_path)
    assert again._before.keys() == {"a.sql", "b.sql"}
    monkeypatch.setattr(FileHashes, "read", lambda *_: pytest.fail("it was read"))
    assert again.hash_file("b.sql") == sha("b.sql")
