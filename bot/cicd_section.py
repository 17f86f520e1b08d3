"""`cicd_bot` as plain data, read in a child of its own, which must start fast: this file imports little."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from mergeplan.planner.errors import Place
from mergeplan.planner.parsing.files.configuration import START
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path, read_document

NAME = "cicd_bot"
Leaf = tuple[Path, Any]


@dataclass(frozen=True)
class CicdSection:
    """`cicd_bot` of a configuration: plain values, None where it has none, and the lines of its keys."""

    path: str
    value: Any = None
    lines: Mapping[str, int] = field(default_factory=dict)  # `rules.0.models` -> line; '' is that of `cicd_bot`
    files: Sequence[str] = ()  # of the project: those that code read, its own among them

    def place(self, key: str) -> Place:
        """Return the place of a key such as `rules.0.models`, or that of the nearest key above it with a line."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return Place(self.path, self.lines.get(key, 0))


def read_section(path: str, text: str) -> CicdSection:
    """Return the section of a config.yaml; raise ProjectError if the file or the section is wrong."""
    return section_of(read_document(path, text, lambda _variable, _place: START))


def section_of(document: Document, files: Sequence[str] = ()) -> CicdSection:
    """Return the section of a configuration, with a mark for each environment variable; raise ProjectError."""
    if not isinstance(document.value, dict) or NAME not in document.value:
        return CicdSection(document.path, files=files)
    value = document.value[NAME]
    for at, leaf in _walk_leaves((NAME,), value):
        if isinstance(leaf, str) and START in leaf:
            raise document.error(at, "`cicd_bot` cannot use environment variables.", "Write the value itself.")
        if isinstance(leaf, float) and not isfinite(leaf):
            raise document.error(at, f"`{'.'.join(map(str, at))}` must be a finite number.")
    lines = {".".join(map(str, at[1:])): line for at, line in document.lines.items() if at[:1] == (NAME,)}
    return CicdSection(document.path, value, lines, files)


def _walk_leaves(key_path: Path, value: Any) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _walk_leaves((*key_path, str(key)), part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk_leaves((*key_path, index), part)
    else:
        yield key_path, value
