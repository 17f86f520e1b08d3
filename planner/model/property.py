"""A property of models as a row: its default, what an edit of it changes, the kinds that take it, and its description.

The row stands at the field that holds the value, of `Model` or of one of its parts: a part is a frozen class of
settings that belong together. The parser, fingerprints, versions, meanings and the editor read it there, and tests hold
the reference to it: a new property is that row, and the code that uses it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, cast

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.serial import is_embedded

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
def properties_of(model: Any) -> dict[str, Property]:
    parts: list[Any] = [type(row.default) for row in fields(model) if is_embedded(row)]
    of_parts = {key: row for part in parts for key, row in properties_of(part).items()}
    rows = {row.name: row.metadata["property"] for row in fields(model) if "property" in row.metadata}
    return of_parts | {key: replace(row, key=key) for key, row in rows.items()}


@cache
def setting_parts(model: Any) -> dict[str, str]:
    """Return the name of each setting -> the field of the part that holds it, '' for the model itself."""
    parts: dict[str, str] = {}
    for row in fields(model):
        of_part: Any = row.default if is_embedded(row) else None
        parts |= dict.fromkeys([inner.name for inner in fields(of_part)], row.name) if of_part else {row.name: ""}
    return parts


def read_setting(model: Any, name: str) -> Any:
    part = setting_parts(model.__class__)[name]
    return getattr(getattr(model, part) if part else model, name)


def replace_settings(model: T, values: Mapping[str, Any]) -> T:
    """Return the model with other values of settings, each in the part that holds it."""
    whole: Any = model
    for name, value in values.items():
        part = setting_parts(whole.__class__)[name]
        whole = replace(whole, **{part: replace(getattr(whole, part), **{name: value})} if part else {name: value})
    return cast(T, whole)
