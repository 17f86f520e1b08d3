"""An index of the project's files in one entry of the cache: what a plan needs of every model, without its texts.

A plan looks at the texts of few models. So a file that did not change is an item of the index, and the text of a model
is read from the file's own entry when something needs it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from mergeplan.planner.deferred import defer
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import setting_parts
from mergeplan.planner.serial import Json, canonical_json, decode_json, find_decoded, line_digest, share_decoded

TEXTS = {"source", "sql", "written", "columns", "metadata"}  # the fields of a model that are read when one is needed
OWN = {"name", "path", "line", "depends_on"}  # those that hardly two models share
Conditions = Mapping[str, Any]  # what the reading of a file depended on, with the answers


@dataclass
class FileIndex:
    """For each file its hash, the number of its conditions, and its models.

    A model is its name, line, tables that it reads, the number of its other settings, the digest of its text, and
    whether it may read an earlier version of a table.
    """

    conditions: list[Conditions] = field(default_factory=list)
    settings: list[Json] = field(default_factory=list)  # of models, as JSON
    files: dict[str, list[Any]] = field(default_factory=dict)

    def find(self, path: str, file_hash: str) -> list[Any] | None:
        row = self.files.get(path)
        return row if row is not None and row[0] == file_hash else None

    def make_models(self, path: str, read: Callable[[int, str], Model]) -> tuple[Model, ...]:
        """Return the models of a file; `read` returns one by its number and the digest of its text."""
        return tuple(self._make_model(path, number, row, read) for number, row in enumerate(self.files[path][2]))

    def _make_model(self, path: str, number: int, row: list[Any], read: Callable[[int, str], Model]) -> Model:
        name, line, reads, settings, text_digest, may_read_versions = row
        model = find_decoded(Model, text_digest)
        if model is None:
            facts = {**self._facts[settings], "name": name, "path": path, "line": line, "depends_on": tuple(reads)}
            facts["may_read_versions"] = may_read_versions
            model = defer(Model, facts, lambda: read(number, text_digest))
            share_decoded(Model, text_digest, model)
        return model

    @cached_property
    def _facts(self) -> list[Mapping[str, Any]]:
        texts = {"name": "", "path": "", "line": 0, "source": ""}
        whole = (decode_json(Model, texts | settings) for settings in self.settings)
        return [{name: value for name, value in vars(model).items() if name not in TEXTS | OWN} for model in whole]

    def encode(self) -> str:
        return json.dumps([self.conditions, self.settings, self.files], separators=(",", ":"))


def decode_index(text: str | None) -> FileIndex:
    """Return the index of a text; an empty one if there is none, or it is no index."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        index = FileIndex(*json.loads(text or "[[],[],{}]"))
        _ = index._facts
        return index
    return FileIndex()


def can_index(text: str | None) -> bool:
    """Return True for an entry of models that ask for no other file; one of audits is read as a whole."""
    if text is None or '"seed"' in text:
        return False
    entry = json.loads(text.partition("\n")[0])
    return not entry["audits"] and "columns" not in entry["asked"] and "rest" not in entry and "\n" in text


def build_index(old: FileIndex, reused: Iterable[str], entries: Iterable[tuple[str, str, str]]) -> FileIndex:
    """Return the index of these paths of an old one, and of files with new entries: (path, hash, text)."""
    index, numbers = FileIndex(), dict[str, int]()

    def number_of(values: list[Any], value: Json) -> int:
        number = numbers.setdefault(f"{values is index.conditions} {canonical_json(value)}", len(values))
        values.extend([value] if number == len(values) else [])
        return number

    numbers_now = cache(lambda number: number_of(index.settings, old.settings[number]))
    for path in reused:
        file_hash, condition, rows = old.files[path]
        models = [[*row[:3], numbers_now(row[3]), *row[4:]] for row in rows]
        index.files[path] = [file_hash, number_of(index.conditions, old.conditions[condition]), models]
    for path, file_hash, text in entries:
        head, *lines = text.split("\n")
        models = [_describe_model(line, lambda settings: number_of(index.settings, settings)) for line in lines]
        index.files[path] = [file_hash, number_of(index.conditions, json.loads(head)["asked"]), models]
    return index


def _describe_model(line: str, number_of: Callable[[Json], int]) -> list[Any]:
    data, parts = json.loads(line), setting_parts(Model)
    settings = {key: value for key, value in data.items() if (parts[key] or key) not in TEXTS | OWN}
    reads = data.get("depends_on", ())
    may_read_versions = decode_json(Model, data).may_read_versions
    return [data["name"], data["line"], reads, number_of(settings), line_digest(line), may_read_versions]


def index_key(context: str) -> str:
    return digest("file index 1", context)
