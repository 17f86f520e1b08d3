"""What reads a project's files: another version of it may read them otherwise, and asks for entries of its own."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path

from sqlglot._version import __version__ as parser_version

from mergeplan.planner.fingerprint import digest

PLANNER = Path(__file__).parent.parent
READERS = ("*.py", "cache/*.py", "model/**/*.py", "parsing/**/*.py", "project/**/*.py", "python/**/*.py",
           "semantics/**/*.py", "snapshot/*.py", "**/*.ini", "**/*.conf")  # fmt: skip


@cache
def reader_version() -> str:
    """Return a digest of our code and lists that read files, and of the versions of sqlglot and Python.

    The code and not the package's version: an installation that is edited keeps its version.
    """
    content = hashlib.sha256()
    for path in sorted({str(path) for pattern in READERS for path in PLANNER.glob(pattern)}):
        with open(path, "rb") as file:
            text = file.read()
        content.update(b"%b %d %b" % (path.removeprefix(str(PLANNER)).encode(), len(text), text))
    return digest(content.hexdigest(), parser_version, sys.version)
