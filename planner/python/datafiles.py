"""The data files of a project, their names and contents, for the code that may read them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from planner.fingerprint import digest
from planner.parsing.files.configuration import CONFIGS
from planner.python.filereads import FileNames, FileReads

# Folders inside a project's folder that do not belong to it.
_LEFT_OUT = frozenset(("__pycache__", "node_modules", "spark-warehouse", "metastore_db"))
_READ_BY_US = (("models", ".sql"), ("audits", ".sql"), ("macros", ".sql"), ("tests", ".yaml"), ("tests", ".yml"))


class DataFiles:
    """The files below a project's root; each is read when its content is first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hashes: dict[str, str] = {}
        self._digests: dict[frozenset[str], str] = {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """From the root, sorted; without what is hidden, virtual environments and what mergeplan itself writes."""
        found: list[str] = []
        home = os.environ.get("MERGEPLAN_HOME")
        ours = Path(home).resolve() if home else None
        for folder, inner, names in os.walk(self.root):
            at = Path(folder)
            inner[:] = sorted(
                name
                for name in inner
                if not name.startswith(".")
                and name not in _LEFT_OUT
                and at / name != ours
                and not (at / name / "pyvenv.cfg").exists()
            )
            found += ((at / name).relative_to(self.root).as_posix() for name in names if not name.startswith("."))
        return tuple(sorted(found))

    @cached_property
    def _names(self) -> FileNames:
        return FileNames(self.paths)

    @cached_property
    def _of_code_alone(self) -> frozenset[str]:
        """The files that mergeplan itself does not read."""
        return frozenset(path for path in self.paths if not _is_read_by_us(path))

    def digest(self, reads: FileReads, given: Iterable[str]) -> str:
        """A digest of the files that code may read, with their names; '' when there is none. `given` are texts that it
        is given while it runs."""
        named = frozenset(reads.named(self._names, given))
        if reads.unclear:
            named |= self._of_code_alone
        if named and named not in self._digests:
            parts = (part for path in sorted(named) for part in (path, self._hash(path)))
            self._digests[named] = digest(*parts)
        return self._digests[named] if named else ""

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = _content(self.root / path)
        return self._hashes[path]


def _is_read_by_us(path: str) -> bool:
    """True for files that mergeplan itself reads: code, queries, tests, the configuration."""
    kind = (path.split("/")[0], Path(path).suffix)
    return kind in _READ_BY_US or kind[1] == ".py" or path in CONFIGS


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.errno}"
