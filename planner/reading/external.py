"""external_models.yaml: the tables that others write and our models read."""

from __future__ import annotations

from collections.abc import Iterator

from planner.intervals import Cron
from planner.model import Column, Kind, Model
from planner.reading.documents import Document, Path
from planner.reading.names import model_name
from planner.reading.parse import Defaults
from planner.reading.properties import spark_type
from planner.reading.sqltext import did_you_mean

_KEYS = ("name", "description", "columns", "owner", "tags", "grain")
_LATER = ("gateway", "audits", "start", "grains", "references", "column_descriptions")


def external_models(document: Document, text: str, defaults: Defaults) -> Iterator[Model]:
    """The EXTERNAL models of one file; ProjectError at what is wrong."""
    if document.value is None:
        return
    if not isinstance(document.value, list):
        raise document.error((), "A list of tables was expected here, each `- name: schema.table`.")
    for index, given in enumerate(document.value):
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise document.error((index,), "An external model needs a `name`.", "Write `- name: schema.table`.")
        for key in given:
            if key in _LATER:
                raise document.error((index, key), f"`{key}` of an external model is not supported yet.")
            if key not in _KEYS:
                hint = did_you_mean(str(key), _KEYS)
                raise document.error((index, str(key)), f"`{key}` is not a key of an external model.", hint)
        yield Model(
            name=model_name(given["name"], document.place((index, "name"))),
            kind=Kind.EXTERNAL,
            path=document.path,
            line=document.place((index,)).line,
            source=_item(text, document, index, len(document.value)),
            dialect=defaults.dialect,
            columns=_external_columns(document, index, given.get("columns") or {}, defaults.dialect),
            cron=Cron(defaults.cron),
            description=str(given.get("description") or ""),
            owner=str(given.get("owner") or ""),
            tags=_texts(document, (index, "tags"), given.get("tags")),
            grain=_texts(document, (index, "grain"), given.get("grain")),
        )


def _external_columns(document: Document, index: int, given: object, dialect: str) -> tuple[Column, ...]:
    at: Path = (index, "columns")
    if not isinstance(given, dict):
        raise document.error(at, "`columns` must be a mapping of `name: type` lines.")
    return tuple(
        Column(str(name).lower(), spark_type(str(text), dialect, document.place((*at, str(name)))))
        for name, text in given.items()
    )


def _texts(document: Document, at: Path, given: object) -> tuple[str, ...]:
    items = [] if given is None else given if isinstance(given, list) else [given]
    if not all(isinstance(item, str) for item in items):
        raise document.error(at, f"`{at[-1]}` must be a list of texts.")
    return tuple(str(item) for item in items)


def _item(text: str, document: Document, index: int, count: int) -> str:
    """The lines of one item of the file, so that a change of another item is no change of this one."""
    lines = text.split("\n")
    start = document.place((index,)).line - 1
    end = document.place((index + 1,)).line - 1 if index + 1 < count else len(lines)
    return "\n".join(lines[start:end]).rstrip()
