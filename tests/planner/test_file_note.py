"""A note outlives the process that wrote it, and what is no path of a project's file is not believed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.file_note import SIZE, VARIABLE, make_note, read_note

CHILD = """
import os, signal
from mergeplan.planner.file_note import note_file
note_file("models/a_long_name.sql")
note_file("models/b.sql")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_last_file_is_known_after_a_kill(tmp_path: Path) -> None:
    note = tmp_path / "note"
    make_note(note)
    child = subprocess.run([sys.executable, "-c", CHILD], env={**os.environ, VARIABLE: str(note)}, check=False)

    assert child.returncode == -signal.SIGKILL
    assert read_note(note) == "models/b.sql"


@pytest.mark.parametrize("text", [b"", b"/etc/passwd", b"models/../../x", b"a\nb", b"\xff", b"x" * SIZE * 2])
def test_what_is_no_path_of_a_file_is_no_note(tmp_path: Path, text: bytes) -> None:
    note = tmp_path / "note"
    note.write_bytes(text)
    assert len(read_note(note)) in (0, SIZE)
    assert not read_note(note).strip("x")


def test_without_a_note_there_is_none(tmp_path: Path) -> None:
    assert read_note(tmp_path / "none") == ""
