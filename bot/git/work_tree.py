"""The files of a commit in a folder that is used again: from one commit to the next only what differs is written.

What the last run left there is not trusted. Each file was noted when it was written: its inode, size and times, the
time of the last change of the inode among them, which no program can set. Before the folder is used again it is gone
through, and whatever is not exactly as it was noted, or was never written here, is removed and written anew. The notes
are in this process's memory alone.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from filelock import FileLock, Timeout

from mergeplan.bot.git.call import BadCommit, remove_path
from mergeplan.bot.git.objects import PROGRAM, SUBMODULE, Entry, Objects, split_batches

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Note:
    """What a file is, and how the file system had it when it was written."""

    entry: Entry
    seen: tuple[int, ...]


@dataclass
class WorkTree:
    """One folder, the tree that it holds, and a note of each of its files."""

    place: Path
    tree: str | None = None
    _notes: dict[str, _Note] = field(default_factory=dict)

    def bring(self, objects: Objects, tree: str) -> None:
        """Make the folder hold exactly the files of a tree, byte for byte."""
        old_tree, self.tree = self.tree, None  # it holds nothing for certain until this is done
        if old_tree is None or self.place.is_symlink() or not self.place.is_dir():
            remove_path(self.place)
            self._notes.clear()
            self.place.mkdir(parents=True)
            old_tree = None
        pending_files = self._find_repairs()
        for path, old_entry, new_entry in objects.changes(old_tree, tree):
            if old_entry:
                self._remove_file(path)
                pending_files.pop(path, None)
            if new_entry:
                pending_files[path] = new_entry
        self._write_files(objects, pending_files)
        self.tree = tree

    def _find_repairs(self) -> dict[str, Entry]:
        """Return the files to write again; remove files that this class did not write."""
        folders = {""}
        for path, note in self._notes.items():
            parts = path.split("/")
            folders |= {"/".join(parts[:count]) for count in range(1, len(parts) + (note.entry.mode == SUBMODULE))}
        sound = set(self._list_unchanged(folders))
        wrong = {path: note.entry for path, note in self._notes.items() if path not in sound}
        for path in wrong:
            self._remove_file(path)
        if wrong:
            log.warning("work_tree_repaired", folder=self.place.name, files=len(wrong))
        return wrong

    def _list_unchanged(self, folders: set[str]) -> Iterator[str]:
        """Yield the files that are unchanged since they were noted; other files are removed."""
        pending_folders = [""]
        while pending_folders:
            under = pending_folders.pop()
            with os.scandir(self.place / under) as scan:
                entries = list(scan)
            for entry in entries:
                path = f"{under}/{entry.name}" if under else entry.name
                note = self._notes.get(path)
                if entry.is_dir(follow_symlinks=False) and path in folders:
                    pending_folders.append(path)
                    if note and note.entry.mode == SUBMODULE:
                        yield path
                elif note and note.seen == _file_identity(entry.stat(follow_symlinks=False)):
                    yield path
                else:
                    remove_path(Path(entry.path))

    def _remove_file(self, path: str) -> None:
        """Remove a file, and each folder above it that is empty then."""
        self._notes.pop(path, None)
        file = self.place / path
        remove_path(file)
        for folder in file.parents:
            if folder == self.place:
                return
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return

    def _write_files(self, objects: Objects, entries: Mapping[str, Entry]) -> None:
        texts = {path: entry for path, entry in entries.items() if entry.mode != SUBMODULE}
        objects.need(entry.oid for entry in texts.values())
        for path, entry in entries.items():
            if any(part in ("", ".", "..") or part.lower() == ".git" for part in path.split("/")):
                raise BadCommit("The commit holds a path that no file may have.", path)
            if entry.mode == SUBMODULE:
                if f"{path}/".startswith("models/"):  # its models would count as removed
                    raise BadCommit("A submodule cannot hold models: commit their files to this repository.", path)
                (self.place / path).mkdir(parents=True, exist_ok=True)
                self._notes[path] = _Note(entry, ())
        made = {""}
        for group in split_batches(texts.items()):
            for (path, entry), content in zip(group, objects.get_all([e.oid for _, e in group], "blob"), strict=True):
                folder = path.rpartition("/")[0]
                if folder not in made:
                    (self.place / folder).mkdir(parents=True, exist_ok=True)
                    made.add(folder)
                self._notes[path] = _Note(entry, _write_file(self.place / path, entry, content))


@dataclass(frozen=True)
class Slot:
    """A work tree that this process alone uses for as long as it lives."""

    tree: WorkTree
    lock: FileLock


def claim_slot(place: Path) -> Slot | None:
    lock = FileLock(place.with_name(f"{place.name}.lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return Slot(WorkTree(place), lock)


def _write_file(file: Path, entry: Entry, content: bytes) -> tuple[int, ...]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(file, flags, 0o755 if entry.mode == PROGRAM else 0o644)
    try:
        remaining_content = memoryview(content)
        while remaining_content:
            remaining_content = remaining_content[os.write(descriptor, remaining_content) :]
        return _file_identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _file_identity(stat: os.stat_result) -> tuple[int, ...]:
    return (stat.st_mode, stat.st_ino, stat.st_nlink, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
