"""One reading of a project's folder: the texts and hashes of its files, and the errors of all of them."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from time import process_time
from types import MappingProxyType
from typing import TypeVar

from mergeplan.planner.cache.file_hashes import FileHashes
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import CatalogUnknown, Place, ProjectError, ProjectErrors, RequestError
from mergeplan.planner.file_note import note_file
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.parsing.sql.yaml_problems import find_conflict

T = TypeVar("T")
NOTHING: Mapping[str, str] = MappingProxyType({})
PROJECT_SECONDS = 900.0  # of the processor's time for all files, each of which has a limit of its own
SIMPLER = "Make it simpler: something in it is nested very deeply, repeated very often, or very long."


class Folder:
    """The files below a root by path, also `proposed` texts; `hashes` are those of all that was read."""

    def __init__(self, root: Path, cache: Cache, proposed: Mapping[str, str] = NOTHING) -> None:
        if not is_unicode(str(root)):
            raise RequestError("The path of the project's folder is not UTF-8.", hint="Rename the folder.")
        self.root, self.proposed = root, proposed
        self.errors: list[ProjectError] = []
        self.hashes: dict[str, str] = {}
        self.last = ""  # the file that was read last
        self._known = FileHashes(cache, root)
        self._listed: dict[str, list[str]] = {}  # folder -> the files below it
        self._began = process_time()

    def hash(self, name: str) -> str:
        """Return the hash of a file's content; raise ProjectError if it cannot be read."""
        try:
            proposed_text = self.proposed.get(name)
            self.hashes[name] = self._known.hash_file(name) if proposed_text is None else _hash_text(proposed_text)
        except OSError as error:
            raise ProjectError(f"The file cannot be read: {error.strerror}.", place=Place(name)) from None
        return self.hashes[name]

    def text(self, name: str) -> str:
        """Return the file's text and record its hash; raise ProjectError if it is not UTF-8."""
        self.last = name
        note_file(name)
        if process_time() - self._began > PROJECT_SECONDS:
            message = (
                f"The file was not read: those before it took {PROJECT_SECONDS:.0f} seconds of the processor's time."
            )
            raise ProjectError(message, place=Place(name), hint="Make them simpler, or divide the project.")
        if name in self.proposed:
            self.hashes[name] = _hash_text(self.proposed[name])
            return self.proposed[name].replace("\r\n", "\n")
        try:
            data, self.hashes[name] = self._known.read(name)
        except OSError as error:
            raise ProjectError(f"The file cannot be read: {error.strerror}.", place=Place(name)) from None
        try:
            text = data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            place = Place(name, data.count(b"\n", 0, error.start) + 1)
            raise ProjectError("The file is not UTF-8 text.", place=place, hint="Save it as UTF-8.") from None
        if "<<<<<<< " in text and (conflict := find_conflict(name, text)):
            raise conflict
        return text

    def files(self, folder: str, ignore_patterns: Sequence[str], *suffixes: str) -> Iterator[str]:
        """Yield visible files below a folder that match no pattern, sorted; raise ProjectError for non-UTF-8 names."""
        if folder not in self._listed:
            proposed = {name for name in self.proposed if name.startswith(f"{folder}/")}
            names = proposed.union(_list_files(self.root / folder, folder))
            self._listed[folder] = sorted(names, key=lambda name: name.split("/"))
        for name in self._listed[folder]:
            if name.lower().endswith(suffixes):
                if any(fnmatch(name, pattern) or PurePosixPath(name).match(pattern) for pattern in ignore_patterns):
                    continue
                if not is_unicode(name):
                    shown = name.encode("utf-8", "backslashreplace").decode()
                    raise ProjectError(f"The name of the file is not UTF-8: `{shown}`.", hint="Rename the file.")
                if not name.endswith(suffixes):
                    # read as nothing, it would leave a model out of prod, or a test that is never run
                    path = PurePosixPath(name)
                    hint = f"Rename it to `{path.stem}{path.suffix.lower()}`, or add it to `ignore_patterns`."
                    raise ProjectError(f"Files that end in `{path.suffix}` are not read.", place=Place(name), hint=hint)
                yield name

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def each(self, things: Iterable[T], read: Callable[[T], None]) -> None:
        """Read every thing; a wrong one does not hide the others' errors."""
        for thing in things:
            try:
                with limit_resources(self.too_much):
                    read(thing)
            except ProjectErrors as errors:
                self.errors += errors.errors
            except ProjectError as error:
                self.errors.append(error)

    def too_much(self, why: str) -> ProjectError:
        """Return the error of the last file that was read, which exceeds a limit."""
        return ProjectError(f"The file cannot be read: it {why}.", place=Place(self.last), hint=SIMPLER)

    def finish(self) -> None:
        """Store the hashes; raise ProjectErrors if there were errors, in the order of files and lines."""
        self._known.save()
        if self.errors:
            # a wrong default is found in every file
            self.errors = list({str(error): error for error in self.errors}.values())
            self.errors.sort(key=lambda error: (error.place.path, error.place.line) if error.place else ("", 0))
            raise ProjectErrors(tuple(_join_catalogs(self.errors)))

    @property
    def digest(self) -> str:
        """A hash over all that was looked at."""
        return digest(*(part for name, hashed in sorted(self.hashes.items()) for part in (name, hashed)))


def _join_catalogs(errors: Sequence[ProjectError]) -> Iterator[ProjectError]:
    """Yield the errors, with one for each catalog that the gateway does not have, at its first name."""
    names: dict[str, dict[str, CatalogUnknown]] = {}  # by what to do about it
    for error in errors:
        if isinstance(error, CatalogUnknown):
            names.setdefault(error.hint, {}).setdefault(error.name, error)
    for error in errors:
        if not isinstance(error, CatalogUnknown):
            yield error
        elif catalog_errors := names.pop(error.hint, None):
            where, rest = (error.name, error.catalog, error.gateway), len(catalog_errors) - 1
            yield CatalogUnknown(*where, place=error.located, hint=error.hint, rest=rest)


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_unicode(name: str) -> bool:
    """Return False for a name of bytes that are not UTF-8, which has no text and so no hash."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _list_files(folder: Path, name: str) -> Iterator[str]:
    """Yield the files below a folder, as paths that begin with its name; skip hidden ones and links to folders."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.name.startswith((".", "__pycache__")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _list_files(folder / entry.name, f"{name}/{entry.name}")
        elif entry.is_file():
            yield f"{name}/{entry.name}"
