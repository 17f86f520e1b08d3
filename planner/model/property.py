"""A property of models as a row: its default, what an edit of it changes, the kinds that take it, and its description.

The row stands at the field of `Model` that holds the value. The parser, fingerprints, versions, meanings and the editor
read it there, and tests hold the reference to it: a new property is that row, and the code that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from mergeplan.planner.model.kind import Kind

T = TypeVar("T")


class Facet(StrEnum):
    """The part of a model that an edit of a property changes."""

    ROWS = "rows"  # its table is another one
    LAYOUT = "layout"  # its files, in which the same rows are
    METADATA = "metadata"  # nothing that is computed
    NONE = "none"  # nothing: it is in no fingerprint


@dataclass(frozen=True)
class Property:
    """A row: `default` is of the type that its text is read as; `kinds` () makes it a property of MODEL.

    The text of a `pinned` one has a place of its own in fingerprints and versions, which never changes.
    """

    key: str
    default: object
    facet: Facet
    doc: str
    kinds: tuple[Kind, ...] = ()
    pinned: bool = False


def declare(default: T, facet: Facet, doc: str, *kinds: Kind, pinned: bool = False) -> T:
    return field(default=default, metadata={"property": Property("", default, facet, doc, kinds, pinned)})


@cache
def properties_of(model: type[Any]) -> dict[str, Property]:
    rows = {row.name: row.metadata["property"] for row in fields(model) if "property" in row.metadata}
    return {key: replace(row, key=key) for key, row in rows.items()}
