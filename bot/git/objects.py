"""Git's objects as they are read here: believed only when their content hashes to their name.

GitHub gives a commit's name; it names its tree, that names files and folders. So a text is the reviewed one, or it
is none: no filter, no attribute and no file of the mirror comes between.
"""

import hashlib
import os
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from mergeplan.bot.git.call import GIT_SECONDS, BadCommit, CheckoutFailed, open_git_folder

FOLDER, LINK, SUBMODULE, PROGRAM = "40000", "120000", "160000", "100755"
PATHS_MOST = 500_000
ASKED_MOST = 256  # objects at once: their names have to fit into a pipe
OBJECT_MOST = 256 * 1024  # bytes of one object that is remembered
MEMORY_MOST = 16 * 1024 * 1024  # bytes of all that are, for one repository
Fetch = Callable[[Sequence[str]], None]
T = TypeVar("T")


class Tampered(CheckoutFailed):
    """The data under an object's name is not that object."""


@dataclass(frozen=True)
class GitCommit:
    tree: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One line of a tree: a file, a link, a folder, or a submodule's commit."""

    mode: str
    oid: str

    @property
    def is_folder(self) -> bool:
        return self.mode == FOLDER

    @property
    def is_text(self) -> bool:
        """True for what has a text of its own; a link's is where it points."""
        return self.mode not in (FOLDER, SUBMODULE)


class ObjectMemory:
    """Contents that were read and hash to their name, which stay true. Those that were used last are dropped last."""

    def __init__(self) -> None:
        self._contents: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size = 0  # bytes
        self._lock = threading.Lock()

    def get(self, oid: str, kind: str) -> bytes | None:
        with self._lock:
            if (oid, kind) in self._contents:
                self._contents.move_to_end((oid, kind))
            return self._contents.get((oid, kind))

    def put(self, oid: str, kind: str, content: bytes) -> None:
        if len(content) > OBJECT_MOST:
            return
        with self._lock:
            if (oid, kind) not in self._contents:
                self._contents[oid, kind] = content
                self._size += len(content)
            while self._size > MEMORY_MOST:
                self._size -= len(self._contents.popitem(last=False)[1])


class Objects:
    """A reader of one folder of objects: one `git cat-file --batch-command`, started by the first question.

    Of a partial clone the folder lacks texts: `fetch` brings them in. Trees and texts that `memory` holds are not read.
    """

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], memory: ObjectMemory, fetch: Fetch | None) -> None:
        self._start = start
        self._memory = memory
        self._fetch = fetch

    @cached_property
    def _cat_process(self) -> subprocess.Popen[bytes]:
        return self._start()

    def need(self, oids: Iterable[str]) -> None:
        """Fetch, all at once, the missing texts; none is believed to be here unread."""
        missing = []
        for batch in split_batches(dict.fromkeys(oids)) if self._fetch else ():
            self._send_command("info", batch)
            missing += [oid for oid in batch if self._read_header() == [oid, "missing"]]
        if missing and self._fetch:
            self._fetch(missing)

    def find(self, oid: str, kind: str) -> bytes | None:
        """Return an object's content, None if it does not exist; raise Tampered if it is another object."""
        self._send_command("contents", [oid])
        return self._read_object(oid, kind)

    def get_all(self, oids: Sequence[str], kind: str) -> Iterator[bytes]:
        """Yield objects that must exist, in this order; at most ASKED_MOST, all of which must be read."""
        if len(oids) > ASKED_MOST:
            raise ValueError("more objects than fit into a pipe")
        self._send_command("contents", oids)
        for oid in oids:
            yield self._require_content(oid, self._read_object(oid, kind))

    def prove(self, oids: Iterable[str], kind: str) -> None:
        """Read objects that must be there, so that who reads the folder next finds them as they are named."""
        for batch in split_batches(oids):
            for _ in self.get_all(batch, kind):
                pass

    def _send_command(self, what: str, oids: Sequence[str]) -> None:
        assert self._cat_process.stdin is not None
        try:
            self._cat_process.stdin.write("".join(f"{what} {oid}\n" for oid in oids).encode())
            self._cat_process.stdin.flush()
        except BrokenPipeError:
            raise Tampered("The mirror's objects cannot be read.") from None

    def _read_header(self) -> list[str]:
        assert self._cat_process.stdout is not None
        return self._cat_process.stdout.readline().decode("ascii", "replace").split()

    def _read_object(self, oid: str, kind: str) -> bytes | None:
        answer, header = self._cat_process.stdout, self._read_header()
        assert answer is not None
        if header == [oid, "missing"]:
            return None
        if len(header) != 3 or not header[2].isdigit():
            raise Tampered(f"The mirror's object {oid[:12]} cannot be read.")
        content = answer.read(int(header[2]))
        answer.read(1)
        if header[1] != kind or name_of(header[1], content, len(oid)) != oid:
            raise Tampered(f"The mirror's object {oid[:12]} is another one.")
        return content

    def get(self, oid: str, kind: str) -> bytes:
        return self._require_content(oid, self.find(oid, kind))

    def text(self, oid: str) -> bytes:
        content = self._memory.get(oid, "blob")
        if content is None:
            self.need([oid])
            content = self.get(oid, "blob")
            self._memory.put(oid, "blob", content)
        return content

    def _require_content(self, oid: str, content: bytes | None) -> bytes:
        if content is None:
            raise Tampered(f"The mirror's object {oid[:12]} is missing.")
        return content

    def commit(self, oid: str) -> GitCommit | None:
        content = self.find(oid, "commit")
        return None if content is None else read_commit(content)

    def tree(self, oid: str) -> dict[str, Entry]:
        content = self._memory.get(oid, "tree")
        if content is None:
            content = self.get(oid, "tree")
            self._memory.put(oid, "tree", content)
        # an entry: `mode SP name NUL oid`, one after the other.
        length = len(oid) // 2
        entries, at = {}, 0
        while at < len(content):
            space, end = content.index(b" ", at), content.index(b"\0", at)
            mode, name = content[at:space].decode(), os.fsdecode(content[space + 1 : end])
            at = end + 1 + length
            entries[name] = Entry(mode.lstrip("0"), content[end + 1 : at].hex())
        return entries

    def differing(self, old: str | None, new: str | None) -> Iterator[tuple[str, Entry]]:
        """Yield the paths that differ between two trees, as each side has them; equal subtrees are not read."""
        for path, *sides in self.changes(old, new):
            yield from ((path, entry) for entry in sides if entry)

    def changes(self, old: str | None, new: str | None) -> Iterator[tuple[str, Entry | None, Entry | None]]:
        """Yield the paths below two trees whose file differs, with both entries; raise BadCommit for too many."""
        pending_folders, count = [("", old, new)] if old != new else [], 0
        while pending_folders:
            under, old_oid, new_oid = pending_folders.pop()
            old_entries, new_entries = (self.tree(oid) if oid else {} for oid in (old_oid, new_oid))
            for name in sorted(old_entries.keys() | new_entries.keys()):
                sides = (old_entries.get(name), new_entries.get(name))
                if sides[0] == sides[1]:
                    continue
                folders = [side.oid if side and side.is_folder else None for side in sides]
                if any(folders):
                    pending_folders.append((f"{under}{name}/", folders[0], folders[1]))
                files = [side if side and not side.is_folder else None for side in sides]
                if any(files):
                    yield f"{under}{name}", files[0], files[1]
                count += 1
                if count > PATHS_MOST:
                    raise BadCommit(f"The commit holds more than {PATHS_MOST:,} paths.")


@contextmanager
def open_objects(folder: Path, memory: ObjectMemory, fetch: Fetch | None = None) -> Iterator[Objects]:
    with ExitStack() as stack:
        yield Objects(lambda: stack.enter_context(_cat_file(folder)), memory, fetch)


@contextmanager
def _cat_file(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open_git_folder(folder) as call:
        child = subprocess.Popen(
            [*call.argv, "cat-file", "--batch-command"], env=dict(call.environment), cwd=call.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        late = threading.Timer(GIT_SECONDS, child.kill)  # a pipe in a pack's place would be waited for
        late.daemon = True
        late.start()
        try:
            yield child
        finally:
            late.cancel()
            child.kill()
            child.communicate()


def split_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists of at most ASKED_MOST."""
    every = list(items)
    for start in range(0, len(every), ASKED_MOST):
        yield every[start : start + ASKED_MOST]


def name_of(kind: str, content: bytes, length: int = 40) -> str:
    """Return git's name for an object of that content.

    >>> name_of("blob", b"")
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    digest = hashlib.sha1 if length == 40 else hashlib.sha256
    return digest(b"%s %d\0" % (kind.encode(), len(content)) + content, usedforsecurity=False).hexdigest()


def read_commit(content: bytes) -> GitCommit:
    head = content.partition(b"\n\n")[0].decode("utf-8", "replace").split("\n")
    pairs = [line.partition(" ")[::2] for line in head]
    tree = next(oid for key, oid in pairs if key == "tree")
    return GitCommit(tree, tuple(oid for key, oid in pairs if key == "parent"))
