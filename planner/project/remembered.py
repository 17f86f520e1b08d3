"""Cache the content of a project's files, so that a file that did not change is not parsed again.

An entry is found by the file's path and content, what the project gives every file, and the version of the reader. The
entry also stores what else the reading needed, with the answers: columns of other tables, dates that move, names of
macros, Jinja's macros, custom materializations. These are looked up again, and if an answer differs, the file is parsed
again. A file that calls a macro of the project is always parsed again, because it is unknown what that reads.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from time import process_time
from typing import Any
from weakref import finalize

from mergeplan.planner.cache.store import Cache, Lookups
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.forked import count_processors, map_in_forks
from mergeplan.planner.limits import MEMORY, limit_resources
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.parsing.definitions.known_columns import NotRead
from mergeplan.planner.parsing.definitions.project_defaults import Defaults, Noted
from mergeplan.planner.parsing.sql.user_macros import MacroCall
from mergeplan.planner.project.file_index import FileIndex, build_index, can_index, decode_index, index_key
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.serial import Json, decode_json, decode_line, encode_json, encode_line, line_digest

Said = tuple[tuple[Model, ...], tuple[Audit, ...]]  # what one file says
File = tuple[str, str]  # its path and the hash of its content
Parse = Callable[[str, str, Defaults], Said]  # of a text, its path and the defaults
AHEAD = 60  # files that are worth a fork
AHEAD_SECONDS = 5.0  # of a processor, for a file
AHEAD_SECONDS_IN_ALL = 300.0  # for all files, so that a project that takes hours is refused as soon as it would be
_FORM = "2"


@dataclass
class Remembered:
    """The entries of one load of a project; `foresee` asks for many at once, `keep` writes what was new."""

    cache: Cache
    context: str  # a digest of what every file is read with
    shared: str  # the text of what config.yaml gives every model
    facts: Mapping[str, str]  # "macros", "jinja", "materializations": digests of what a file may use of the project's
    _index: FileIndex = field(default_factory=FileIndex)
    _indexed: dict[str, str] = field(default_factory=dict)  # files of the index that hold -> their hashes
    _foreseen: tuple[File, ...] = ()  # those of which an index is kept
    _last_lines: tuple[File, list[str]] = (("", ""), [])  # of the file whose models were read last
    _found: dict[str, str] = field(default_factory=dict)
    _new: dict[str, str] = field(default_factory=dict)
    _keys: dict[tuple[str, str], str] = field(default_factory=dict)

    def foresee(self, files: Iterable[File]) -> None:
        """Look for the entries of files in one question."""
        self._found |= self.cache.get([self._entry_key(path, hashed) for path, hashed in files])

    def foresee_files(self, files: Sequence[File], defaults: Defaults) -> None:
        """Look for files in the index, and for the entries of the others."""
        key = index_key(self.context)
        self._index, self._foreseen = decode_index(self.cache.get([key]).get(key)), tuple(files)
        holds = [self._is_unchanged(conditions, defaults) for conditions in self._index.conditions]
        rows = ((path, self._index.find(path, hashed)) for path, hashed in files)
        self._indexed = {path: row[0] for path, row in rows if row is not None and holds[row[1]]}
        self.foresee((path, hashed) for path, hashed in files if path not in self._indexed)

    def is_cheap(self, path: str, file_hash: str) -> bool:
        """Return True if a file's content is cached and names no other file that has to be read."""
        if self._is_in_index(path, file_hash):
            return True
        text = self._found.get(self._entry_key(path, file_hash))
        return text is not None and '"seed"' not in text

    def load_from_index(self, file: File, parse: Callable[[], Said]) -> Said | None:
        """Return what the file of this hash says if it is in the index; `parse` does so if its entry is gone."""
        if not self._is_in_index(*file):
            return None
        return self._index.make_models(file[0], partial(self._read_model, file, parse)), ()

    def load_entry(self, file: File, defaults: Defaults, holds: Callable[[Json], bool] = bool) -> Said | None:
        """Return the cached content of the file with this hash if all that it depends on is unchanged; else None.

        `holds` checks what else was stored with it. Raise NotRead while the model of a table is still to be read.
        """
        text = self._found.get(self._entry_key(*file))
        if text is None:
            return None
        head, *lines = text.split("\n")
        entry: dict[str, Json] = json.loads(head)
        if not (self._is_unchanged(entry["asked"], defaults) and holds(entry.get("rest", True))):
            return None
        models = tuple(decode_line(Model, line) for line in lines)
        return models, tuple(decode_json(Audit, audit) for audit in entry["audits"])

    def read(
        self,
        file: File,
        text: str,
        defaults: Defaults,
        read: Callable[[Defaults], Said],
        rest: Callable[[], Json] = bool,
    ) -> Said:
        """Parse the file of this hash and text and cache the result, with the `rest` of its dependencies, if any."""
        noting = defaults.noting()
        models, audits = content = read(noting)
        dependencies = self._entry_dependencies(text, noting.noted)
        if dependencies is not None:
            entry = {"audits": encode_json(audits), "asked": dependencies}
            entry |= {"rest": rest_entry} if (rest_entry := rest()) else {}
            lines = json.dumps(entry, separators=(",", ":")), *map(encode_line, models)
            self._new[self._entry_key(*file)] = "\n".join(lines)
        return content

    def has_entry(self, file: File) -> bool:
        return self._is_in_index(*file) or self._entry_key(*file) in self._found

    def take_new(self) -> dict[str, str]:
        """Return the new entries, which are no longer kept here."""
        entries, self._new = self._new, {}
        return entries

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries that another process made for this load of the project."""
        self._found |= entries
        self._new |= entries

    def find_tried_calls(self, calls: Collection[AuditCall]) -> frozenset[AuditCall]:
        """Return the calls of built-in audits whose query could be made before."""
        keys = {call: digest("audit call", reader_version(), repr(call)) for call in calls}
        hits = self.cache.get(list(keys.values()))
        return frozenset(call for call, key in keys.items() if key in hits)

    def keep_tried(self, calls: Iterable[AuditCall]) -> None:
        self._new |= {digest("audit call", reader_version(), repr(call)): "tried" for call in calls}

    def keep(self, *, with_index: bool = True) -> None:
        """Write what is new, and the index of the foreseen files unless it is as it was."""
        key, texts = index_key(self.context), self._found | self._new
        files = ((*file, self._entry_key(*file)) for file in self._foreseen if file[0] not in self._indexed)
        new = [(path, hashed, texts[entry]) for path, hashed, entry in files if can_index(texts.get(entry))]
        if with_index and (new or self._index.files.keys() - {path for path, _ in self._foreseen}):
            index = build_index(self._index, self._indexed, new)
            self._new |= {key: index.encode()} if index != self._index else {}
        self.cache.put(self._new)
        self._new = {}

    def _is_in_index(self, path: str, file_hash: str) -> bool:
        return self._indexed.get(path) == file_hash

    def _read_model(self, file: File, parse: Callable[[], Said], number: int, text_digest: str) -> Model:
        """Return the model of a file with this number; raise ProjectError if the file is another one by now."""
        last_file, lines = self._last_lines
        if last_file != file:
            lines = (self._texts.get(self._entry_key(*file)) or "").split("\n")[1:]
        if not _has_line(lines, number, text_digest):  # the entry is gone
            lines = [*map(encode_line, parse()[0])]
        if not _has_line(lines, number, text_digest):
            raise ProjectError("The file changed while it was read.", place=Place(file[0]), hint="Run this again.")
        self._last_lines = file, lines
        return decode_json(Model, json.loads(lines[number]))

    @cached_property
    def _texts(self) -> Lookups:
        texts = Lookups(self.cache)
        finalize(self, texts.close)
        return texts

    def _entry_key(self, path: str, file_hash: str) -> str:
        file_key = self._keys.get((path, file_hash))
        if file_key is None:
            file_key = self._keys[path, file_hash] = digest(self.context, path, file_hash)
        return file_key

    def _entry_dependencies(self, text: str, notes: Noted) -> Json | None:
        """Return what an entry depends on, with the answers; None if these cannot be looked up again."""
        if notes.called:
            return None
        dependencies: dict[str, Any] = {}
        if notes.columns:
            dependencies["columns"] = {name: _column_pairs(columns) for name, columns in notes.columns.items()}
        if notes.dates:
            dependencies["dates"] = notes.dates
        if notes.materializations:
            dependencies["materializations"] = self.facts["materializations"]
        # Only who writes one of these can mean a macro: a new one then says something that it did not say before.
        uses = {"macros": "@", "jinja": "{"}
        return dependencies | {
            fact: self.facts[fact] for fact, mark in uses.items() if mark in text or mark in self.shared
        }

    def _is_unchanged(self, dependencies: Mapping[str, Any], defaults: Defaults) -> bool:
        dates, columns = dependencies.get("dates", ()), dependencies.get("columns", {})
        return (
            all(dependencies.get(fact, current_value) == current_value for fact, current_value in self.facts.items())
            and all(
                defaults.resolve_date(text, end=end) == datetime.fromisoformat(answer) for text, end, answer in dates
            )
            and all(_column_pairs(defaults.columns(name)) == answer for name, answer in columns.items())
        )


def open_file_cache(cache: Cache, defaults: Defaults, shared_settings: str) -> Remembered:
    """Return the entries for files that are read with these defaults.

    `shared_settings` is what config.yaml gives every model, as text, with its environment variables filled in.
    """
    inputs = (
        defaults.infer_names,
        defaults.variables,
        defaults.gateway,
        defaults.gateways,
        defaults.overrides,
        sorted(defaults.apart.items()),
        defaults.catalog,
        sorted((gateway, *sorted(names)) for gateway, names in defaults.allowed.items() if names),
    )
    context = digest(_FORM, reader_version(), repr(inputs), str(defaults.start), shared_settings)
    jinja = (part for pair in defaults.jinja for part in pair)
    facts = {
        "macros": digest(*sorted(defaults.macros.names)),
        "jinja": digest(*jinja),
        "materializations": defaults.materializations.digest,
    }
    return Remembered(cache, context, shared_settings, facts)


def prefetch_files(reading: Folder, file_cache: Remembered, defaults: Defaults, names: Sequence[str]) -> None:
    """Load the cached content of all these files at once; an unreadable one is an error when it is read."""
    hashes = []
    for name in names:
        with suppress(ProjectError):
            hashes.append((name, reading.hash(name)))
    file_cache.foresee_files(hashes, defaults)


def read_ahead(reading: Folder, file_cache: Remembered, defaults: Defaults, names: Sequence[str], parse: Parse) -> None:
    """Parse files, if many, on all processors and cache them; leave wrong and dependent ones to `load_file`."""
    new_names = [
        name for name in names if name in reading.hashes and not file_cache.has_entry((name, reading.hashes[name]))
    ]
    processors = count_processors()
    if len(new_names) < AHEAD or processors == 1:
        return
    defaults = replace(defaults, macros=_UncalledMacros(defaults.macros.names, defaults.macros.unavailable))
    limits = AHEAD_SECONDS, MEMORY // processors

    def read_batch(batch: Sequence[str]) -> dict[str, str]:
        for name in batch:
            if process_time() < AHEAD_SECONDS_IN_ALL / processors:
                with suppress(Exception), limit_resources(reading.too_much, *limits):
                    load_file(reading, file_cache, defaults, name, parse)
        return file_cache.take_new()

    for entries in map_in_forks(read_batch, new_names):
        file_cache.add_entries(entries)


@dataclass(frozen=True)
class _UncalledMacros:
    """The names of the project's macros; a file that calls one is not read yet."""

    names: frozenset[str]
    unavailable: tuple[str, ...]

    def call(self, call: MacroCall) -> tuple[str, ...]:
        raise NotRead


def load_file(reading: Folder, file_cache: Remembered, defaults: Defaults, name: str, parse: Parse) -> Said:
    def parse_file() -> Said:
        text = reading.text(name)
        file = name, reading.hashes[name]
        return file_cache.read(file, text, defaults, lambda defaults: parse(text, name, defaults))

    file = name, reading.hashes.get(name, "")
    content = file_cache.load_from_index(file, parse_file) or file_cache.load_entry(file, defaults)
    return parse_file() if content is None else content


def _has_line(lines: Sequence[str], number: int, text_digest: str) -> bool:
    return number < len(lines) and line_digest(lines[number]) == text_digest


def _column_pairs(columns: Mapping[str, str] | None) -> list[list[str]] | None:
    return None if columns is None else [[name, kind] for name, kind in columns.items()]
