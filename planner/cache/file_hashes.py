"""The hashes of a folder's files: a file that looks as it did when it was last read is not read again.

Looks means: the same size, inode, and times of its last edit and of its last change of any kind, which no program sets
back. A file that was edited within moments of being read is read again: a second edit may have fallen in the same tick.
"""

import hashlib
import json
import os
import time
from pathlib import Path

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.fingerprint import digest

TICK = 2 * 10**9  # nanoseconds: the coarsest clock of a file system
_FORM = "file hashes 1"


class FileHashes:
    """The hashes of the files below one root; `save` keeps them for the next process."""

    def __init__(self, cache: Cache, root: Path) -> None:
        self._cache, self._root = cache, root
        self._key = digest(_FORM, str(root))
        text = cache.get([self._key]).get(self._key, "{}")
        self._before: dict[str, list[int | str]] = json.loads(text)
        self._now: dict[str, list[int | str]] = {}

    def hash_file(self, name: str) -> str:
        """Return the SHA-256 of a file, by its path from the root; OSError when it cannot be read."""
        looks = looks_of(os.stat(f"{self._root}/{name}"))
        stored_entry = self._before.get(name)
        if stored_entry is not None and stored_entry[:-1] == looks:
            self._now[name] = stored_entry
            return str(stored_entry[-1])
        return self.read(name)[1]

    def read(self, name: str) -> tuple[bytes, str]:
        """Return the file's content and its hash; OSError when it cannot be read."""
        path = self._root / name
        with path.open("rb") as file:
            looks, began = looks_of(os.fstat(file.fileno())), time.time_ns()
            data = file.read()
            is_unchanged = looks == looks_of(os.fstat(file.fileno()))
        hashed = hashlib.sha256(data).hexdigest()
        if is_unchanged and began - max(looks[2], looks[3]) > TICK:
            self._now[name] = [*looks, hashed]
        return data, hashed

    def save(self) -> None:
        """Keep what was read for the next process, and what is known of the files that nobody asked for."""
        unread_names = self._before.keys() - self._now.keys()
        # else nothing is written, and no removed files are looked for
        is_new = len(unread_names) < len(self._now) or any(
            self._before.get(name) != looks for name, looks in self._now.items()
        )
        gone = {name for name in unread_names if not (self._root / name).exists()} if is_new else set()
        entries = {name: looks for name, looks in self._before.items() if name in unread_names - gone} | self._now
        if entries != self._before:
            self._cache.put({self._key: json.dumps(entries, separators=(",", ":"))})
            self._before = entries


def looks_of(stat: os.stat_result) -> list[int]:
    """Return what changes with every edit of a file."""
    return [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
