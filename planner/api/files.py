"""The project's own files: models, seeds, audits, tests and macros; no settings, no secrets, nothing behind a link."""

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from mergeplan.planner.api.problems import Conflict, NotFound
from mergeplan.planner.errors import RequestError

FOLDERS = frozenset("models seeds audits tests macros signals snapshots analyses".split())
AT_ROOT = frozenset(
    "external_models.yaml exposures.yaml README.md dbt_project.yml".split()
)  # config.yaml has passwords
SUFFIXES = frozenset(".sql .py .yaml .yml .csv .md".split())
PRIVATE = ("secret", "credential", "password", "passwd", "token", "private")  # in the name of a file or folder
LARGEST = 1 << 20  # bytes of a file that is shown or written
MOST = 20_000  # files that are listed
NO_LINKS = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class FileText:
    """A file: its size, and its text, None where it is too large or no text."""

    path: str
    size: int
    text: str | None
    digest: str  # SHA-256 of its bytes


def list_files(root: Path) -> Iterator[str]:
    """Return the paths that may be read, sorted folder by folder; at most MOST of them."""
    paths = (str(path) for path in _walk_files(root, PurePosixPath()) if is_open(path))
    return islice(paths, MOST)


def read_file(root: Path, path: str) -> FileText:
    """Return a file; raise NotFound if it does not exist or may not be read."""
    place = _check_path(path)
    try:
        with _open_parent(root, place) as folder:
            descriptor = os.open(place.name, os.O_RDONLY | os.O_NONBLOCK | NO_LINKS, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise _no_such(path)
                if status.st_size > LARGEST:
                    return FileText(str(place), status.st_size, None, hashlib.file_digest(file, "sha256").hexdigest())
                data = file.read(LARGEST + 1)
    except OSError:
        raise _no_such(path) from None
    digest = hashlib.sha256(data).hexdigest()
    try:
        return FileText(str(place), len(data), data.decode("utf-8"), digest)
    except UnicodeDecodeError:
        return FileText(str(place), len(data), None, digest)


def write_file(root: Path, path: str, text: str, expected: str | None) -> FileText:
    """Write a whole file or nothing; raise Conflict unless it is as `expected` says (None: it is new)."""
    place, data = _check_path(path), text.encode()
    if len(data) > LARGEST:
        raise RequestError(f"The text has {len(data):,} bytes: {LARGEST:,} are allowed.")
    _check_unchanged(root, path, expected)
    aside = f".{place.name}.{secrets.token_hex(4)}"
    try:
        with _open_parent(root, place, make=True) as folder:
            mode = _file_mode(place.name, folder)
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, mode, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                if expected is None:  # an existing entry stays, a link too
                    os.link(aside, place.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
                    os.unlink(aside, dir_fd=folder)
                else:
                    os.replace(aside, place.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(aside, dir_fd=folder)
                raise
    except OSError as error:
        raise Conflict(f"`{path}` cannot be written: {error.strerror}.") from None
    return read_file(root, path)


def delete_file(root: Path, path: str, expected: str) -> None:
    """Delete a file; raise Conflict unless it is as `expected` says."""
    place = _check_path(path)
    _check_unchanged(root, path, expected)
    try:
        with _open_parent(root, place) as folder:
            os.unlink(place.name, dir_fd=folder)
    except OSError as error:
        raise Conflict(f"`{path}` cannot be deleted: {error.strerror}.") from None


def is_open(path: PurePosixPath) -> bool:
    """Return True for the path of a file that may be read: below a folder of the project, without a private name."""
    parts = path.parts
    if not parts or any(part.startswith((".", "__pycache__")) for part in parts):
        return False
    if any(word in part.lower() for part in parts for word in PRIVATE):
        return False
    return path.name in AT_ROOT if len(parts) == 1 else parts[0] in FOLDERS and path.suffix in SUFFIXES


def _check_path(path: str) -> PurePosixPath:
    place = PurePosixPath(path)
    if "\0" in path or "\\" in path or ".." in place.parts or place.is_absolute() or not is_open(place):
        raise _no_such(path)
    return place


def _no_such(path: str) -> NotFound:
    return NotFound(f"There is no file `{path[:200]}` that may be read.", hint="`GET /files` lists those.")


def _check_unchanged(root: Path, path: str, expected: str | None) -> None:
    try:
        current_file = read_file(root, path)
    except NotFound:
        if expected is None:
            return
        raise
    if expected is None:
        raise Conflict(f"There is a file `{path}` already.", hint="Read it, and send its `digest`.")
    if current_file.digest != expected:
        raise Conflict(f"`{path}` was changed meanwhile.", hint="Read it again, and send its `digest`.", retry=True)


@contextmanager
def _open_parent(root: Path, place: PurePosixPath, *, make: bool = False) -> Iterator[int]:
    """Yield the folder of a file, opened step by step so that no link below the project's folder is followed."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in place.parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | NO_LINKS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _file_mode(name: str, folder: int) -> int:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0o644


def _walk_files(root: Path, below: PurePosixPath) -> Iterator[PurePosixPath]:
    try:
        entries = sorted(os.scandir(root / below), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = below / entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name in FOLDERS if not below.parts else not entry.name.startswith((".", "__pycache__")):
                yield from _walk_files(root, path)
        elif entry.is_file(follow_symlinks=False):
            yield path
