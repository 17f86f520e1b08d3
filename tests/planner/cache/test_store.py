"""What is kept is found again, and whatever happens to the file, nothing else is."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache, Lookups

WRITES = """
import sys
from pathlib import Path
from mergeplan.planner.cache.store import Cache, Lookups
cache, mine = Cache(Path(sys.argv[1])), sys.argv[2]
for number in range(40):
    cache.put({f"{mine} {number} {part}": f"text {mine} {number} {part}" * 50 for part in range(20)})
"""


def writer(folder: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITES, str(folder), name])


def texts(*names: str) -> dict[str, str]:
    keys = [f"{name} {number} {part}" for name in names for number in range(40) for part in range(20)]
    return {key: f"text {key}" * 50 for key in keys}


def test_another_process_finds_what_one_kept(tmp_path: Path) -> None:
    Cache(tmp_path).put({"a": "one", "b": "zwei €"})

    assert Cache(tmp_path).get(["a", "b", "c"]) == {"a": "one", "b": "zwei €"}


def test_two_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    assert [process.wait(60) for process in [writer(tmp_path, "x"), writer(tmp_path, "y")]] == [0, 0]

    assert Cache(tmp_path).get(texts("x", "y")) == texts("x", "y")


def test_a_writer_that_is_killed_leaves_nothing_wrong(tmp_path: Path) -> None:
    process = writer(tmp_path, "x")
    while len(Cache(tmp_path).get(texts("x"))) < 60:
        assert process.poll() is None
    process.kill()
    process.wait()

    entries = Cache(tmp_path).get(texts("x"))

    assert entries.items() <= texts("x").items()
    assert len(entries) % 20 == 0, "each write is whole"


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_never_gives_another_text(tmp_path: Path, seed: int) -> None:
    kept = {f"key {number}": f"text {number}" * 200 for number in range(60)}
    Cache(tmp_path).put(kept)
    (file,) = tmp_path.iterdir()
    rng, data = random.Random(seed), bytearray(file.read_bytes())  # noqa: S311 # reproducible, not secret
    for _ in range(rng.choice([1, 40, 4000])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    file.write_bytes(data if seed % 3 else data[: rng.randrange(len(data))])

    assert Cache(tmp_path).get(kept).items() <= kept.items()
    Cache(tmp_path).put({"new": "text"})
    Cache(tmp_path).put({"new": "text"})  # the first may have found the damage
    assert Cache(tmp_path).get(["new"]) == {"new": "text"}


def test_a_text_that_was_changed_in_the_file_is_not_believed(tmp_path: Path) -> None:
    Cache(tmp_path).put({"a": "SELECT 1", "b": "SELECT 2"})
    with sqlite3.connect(next(tmp_path.iterdir())) as connection:
        connection.execute("UPDATE entries SET text = (SELECT text FROM entries WHERE key = 'b') WHERE key = 'a'")
    connection.close()

    assert Cache(tmp_path).get(["a", "b"]) == {"b": "SELECT 2"}


def test_the_entries_that_were_not_read_for_longest_go_when_there_is_no_room(tmp_path: Path) -> None:
    cache = Cache(tmp_path, largest=200_000)
    cache.put({f"old {number}": "x" * 1000 for number in range(100)})
    with sqlite3.connect(next(tmp_path.iterdir())) as connection:
        connection.execute("UPDATE entries SET used = used - 1")
    connection.close()
    assert cache.get(["old 7"])

    cache.put({f"new {number}": "x" * 1000 for number in range(110)})

    assert cache.get(["old 7", "old 8", "new 0", "new 109"]).keys() == {"old 7", "new 0", "new 109"}
    assert next(tmp_path.iterdir()).stat().st_size < 200_000


@pytest.mark.parametrize("folder", [None, Path("/proc/nowhere"), Path(__file__)])
def test_without_a_folder_that_can_be_written_nothing_is_kept_and_nothing_fails(folder: Path | None) -> None:
    Cache(folder).put({"a": "one"})

    assert Cache(folder).get(["a"]) == {}


def test_lookups_find_what_was_kept_and_write_what_is_new(tmp_path: Path) -> None:
    Cache(tmp_path).put({"a": "one"})
    lookups = Lookups(Cache(tmp_path))
    lookups.put("b", "two")

    assert [lookups.get(key) for key in "abc"] == ["one", "two", None]
    assert Cache(tmp_path).get(["b"]) == {}
    lookups.keep()
    assert Cache(tmp_path).get(["a", "b"]) == {"a": "one", "b": "two"}
    assert lookups.get("b") == "two"
    lookups.close()


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_lookups_in_a_damaged_file_find_nothing_and_mend_it(content: bytes, tmp_path: Path) -> None:
    tmp_path.joinpath("entries.db").write_bytes(content)
    lookups = Lookups(Cache(tmp_path))

    assert lookups.get("a") is None
    for _ in range(2):  # what is damaged is removed first
        lookups.put("a", "one")
        lookups.keep()
    assert lookups.get("a") == "one"
    lookups.close()


def test_lookups_without_a_folder_keep_nothing() -> None:
    lookups = Lookups(Cache(None))
    lookups.put("a", "one")
    lookups.keep()

    assert lookups.get("a") is None
