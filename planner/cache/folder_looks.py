"""The looks of a folder's files: while all look the same, all say the same, and none is read.

A file that was edited within moments of being looked at is read too: a second edit may have fallen in the same tick.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mergeplan.planner.cache.file_hashes import TICK, looks_of
from mergeplan.planner.fingerprint import digest

MOST = 100_000  # files
DBT_PROJECT = "dbt_project.yml"


@dataclass(frozen=True)
class FolderLooks:
    """The stat of each file below a folder, and the hashes of those edited a moment ago.

    Hidden files are left out unless dbt reads them.
    """

    looks: Mapping[str, tuple[int, ...]]
    recent: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The files, by their paths from the folder."""
        return frozenset(self.looks)

    @cached_property
    def digest(self) -> str:
        """A digest of how they look; two of one process are compared faster by `looks`."""
        return digest(repr(sorted(self.looks.items())))


class _Linked(Exception):
    """A link stands in a folder's place."""


def look_at(folder: Path) -> FolderLooks | None:
    """How a folder looks now; None when a file cannot be read, or there are too many.

    None, too, where a link leads to a folder, or to nothing yet: what comes to lie there would not be seen. dbt reads
    files that others do not: of its projects, hidden files, and what hidden folders below the root's own hold, are
    looked at too, and no link to a folder may be there at all.
    """
    is_dbt = (folder / DBT_PROJECT).is_file()
    began = time.time_ns()
    looks: dict[str, tuple[int, ...]] = {}
    recent: dict[str, str] = {}
    try:
        for entry, name in _list_files(folder, "", is_dbt):
            looks[name] = look = tuple(looks_of(entry.stat()))
            if began - max(look[2], look[3]) <= TICK:
                recent[name] = hash_file(folder, name)
            if len(looks) > MOST:
                return None
    except (OSError, _Linked):
        return None
    return FolderLooks(looks, recent)


def hash_file(folder: Path, name: str) -> str:
    """Return the SHA-256 of a file's content; OSError when it cannot be read."""
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def _list_files(folder: Path, prefix: str, is_dbt: bool) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield the files below a folder with their paths from it.

    No link to a folder is followed; _Linked for a link that readers of a project do follow, as the project's own
    folders may be links.
    """
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        is_folder = entry.is_dir(follow_symlinks=False)
        is_hidden = entry.name.startswith((".", "__pycache__"))
        if is_hidden and not (is_dbt and (prefix or not is_folder)):
            continue
        if is_folder:
            yield from _list_files(folder / entry.name, f"{prefix}{entry.name}/", is_dbt)
        elif entry.is_file():
            yield entry, f"{prefix}{entry.name}"
        elif entry.is_symlink() and (is_dbt or not prefix):
            raise _Linked
