"""What is found out about a case: the rows of its models, the promises that were looked at, and those broken."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Content:
    """The rows of a model, each as JSON, and the type of the struct that they are."""

    type: str
    rows: tuple[str, ...]

    @property
    def sql(self) -> str:
        """A query that returns these rows."""
        text = ",".join(self.rows).replace("\\", "\\\\").replace("'", "\\'")
        return f"SELECT inline(from_json('[{text}]', 'array<{self.type}>'))"

    @property
    def types(self) -> dict[str, str]:
        """Column -> type."""
        inner, depth, parts = self.type[len("struct<") : -1], 0, [""]
        for char in inner:
            depth += (char in "<(") - (char in ">)")
            if char == "," and not depth:
                parts.append("")
            else:
                parts[-1] += char
        return dict(part.split(":", 1) for part in parts if part)

    def project_columns(self, columns: Sequence[str]) -> list[str]:
        """The rows with these columns only, sorted."""
        return sorted(_cells(row, columns) for row in self.rows)

    def lying_as(self, other: Content) -> Content:
        """The same rows in the order of another table's, told by the columns in which both hold the same."""
        shared = [name for name, kind in self.types.items() if other.types.get(name) == kind]
        shared = [name for name in shared if self.project_columns([name]) == other.project_columns([name])]
        if not shared or self.project_columns(shared) != other.project_columns(shared):
            return self
        waiting: dict[str, list[str]] = {}
        for row in self.rows:
            waiting.setdefault(_cells(row, shared), []).append(row)
        return Content(self.type, tuple(waiting[_cells(row, shared)].pop(0) for row in other.rows))

    def lower_names(self) -> Content:
        """The rows with the names that a table's columns have."""
        if all(name == name.lower() for name in self.types):
            return self
        kinds = ",".join(f"{name.lower()}:{kind}" for name, kind in self.types.items())
        return Content(f"struct<{kinds}>", tuple(map(_lower_keys, self.rows)))

    def arrange(self, names: Sequence[str]) -> Content:
        """The rows with the columns in this order, which the type says."""
        types = self.types
        if list(types) == list(names):
            return self
        return Content(f"struct<{','.join(f'{name}:{types[name]}' for name in names)}>", self.rows)

    def same(self, other: Content) -> bool:
        return self.type == other.type and sorted(self.rows) == sorted(other.rows)


def _lower_keys(row: str) -> str:
    decoder, parts, at = json.JSONDecoder(), list[str](), 1
    while at < len(row):
        key, colon = decoder.raw_decode(row, at)
        _, end = decoder.raw_decode(row, colon + 1)
        parts.append(f"{json.dumps(str(key).lower())}:{row[colon + 1 : end]}")
        at = end + 1
    return f"{{{','.join(parts)}}}"


def _cells(row: str, columns: Sequence[str]) -> str:
    values = json.loads(row, parse_float=str, parse_int=str)
    return json.dumps([values[column] for column in columns])


@dataclass(frozen=True)
class Broken:
    """A promise that was not kept."""

    model: str
    verdict: str
    columns: tuple[str, ...] | None
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]

    def __str__(self) -> str:
        what = "all its rows" if self.columns is None else f"the columns {', '.join(self.columns)}"
        return (
            f"{self.model} was said to be {self.verdict}, which keeps {what}.\n"
            f"  only before: {self.only_old}\n  only after:  {self.only_new}"
        )


@dataclass(frozen=True)
class Answer:
    """What became of a case's promises: how many were looked at and how many could not be, and those broken."""

    kept: int = 0
    refused: int = 0
    broken: tuple[Broken, ...] = ()


# A case asks for the rows of queries, several at a time, and ends with its answer.
Asking = Generator[Sequence[str], Sequence[Content | None], Answer]
