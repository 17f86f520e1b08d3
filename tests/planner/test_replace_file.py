"""Replacement of a file: whole, with its mode, and without leftovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.replace_file import replace_file


def test_a_file_keeps_its_mode_and_a_private_one_is_only_its_owners(tmp_path: Path) -> None:
    shared, private = tmp_path / "shared", tmp_path / "private"
    for path in (shared, private):
        path.write_text("before")
        path.chmod(0o664)

    replace_file(shared, "after\r\n")
    replace_file(private, "after", private=True)

    assert (shared.read_bytes(), private.read_text()) == (b"after\r\n", "after")
    assert (shared.stat().st_mode & 0o777, private.stat().st_mode & 0o777) == (0o664, 0o600)


def test_a_text_that_cannot_be_written_leaves_the_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "\ud800")

    assert ([entry.name for entry in tmp_path.iterdir()], path.read_text()) == (["file"], "before")
