"""The file that this process reads, noted for its parent, however this process ends.

A parser can end the process that runs it, by the end of its stack or of the machine's memory. The parent names a file
of SIZE bytes in the environment; it is mapped, so that a note needs no system call.
"""

import mmap
import os
from functools import cache
from pathlib import Path

VARIABLE = "MERGEPLAN_FILE_NOTE"
SIZE = 4096


def make_note(file: Path) -> None:
    """Create a file with an empty note, for a child that is yet to start."""
    file.write_bytes(bytes(SIZE))


def note_file(path: str) -> None:
    """Note that this file is read from now on; '' for none."""
    note = _map_note()
    if note is not None:
        text = path.encode("utf-8", "replace")[: SIZE - 1]
        note[: len(text) + 1] = text + b"\0"


def read_note(file: Path) -> str:
    """Return the path that a child noted last; '' for none, and for text that is no path below a project's folder."""
    try:
        text = file.read_bytes()[:SIZE].partition(b"\0")[0].decode()
    except (OSError, ValueError):
        return ""
    return text if text.isprintable() and not text.startswith("/") and ".." not in text.split("/") else ""


@cache
def _map_note() -> mmap.mmap | None:
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    try:
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), SIZE)
    except (OSError, ValueError):
        return None  # it only explains
