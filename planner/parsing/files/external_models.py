"""external_models.yaml: the external tables that models read."""

import re
from collections.abc import Collection, Iterator
from datetime import datetime

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import AuditCall, Checks
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Metadata
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.schedule import Schedule
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.definitions.audits.audits import audit_call
from mergeplan.planner.parsing.definitions.audits.freshness import freshness_of
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.definitions.properties import spark_type
from mergeplan.planner.parsing.sql.dates import is_relative, text_of
from mergeplan.planner.parsing.sql.names import parse_name
from mergeplan.planner.parsing.sql.tokens import did_you_mean, parse_dialect
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path

_KEYS = """name description columns column_descriptions owner tags grain grains references start dialect
    gateway audits stamp partial_columns freshness""".split()


def external_models(
    document: Document, text: str, defaults: Defaults, gateways: Collection[str] = ()
) -> Iterator[Model]:
    """Yield a file's EXTERNAL models for the gateway, whose own items override those of none; raise ProjectError."""
    if document.value is None:
        return
    if not isinstance(document.value, list):
        raise document.error((), "Expected a list of tables here, each with `- name: schema.table`.")
    named: set[str] = set()  # tables with an item for this gateway
    chosen: list[tuple[int, str]] = []
    for index, entry in enumerate(document.value):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise document.error((index,), "An external model needs a `name`.", "Write `- name: schema.table`.")
        for key in entry:
            if key not in _KEYS:
                hint = did_you_mean(str(key), _KEYS)
                raise document.error((index, str(key)), f"`{key}` is not a key of an external model.", hint)
        if entry.get("gateway") not in (None, *gateways):
            continue  # its gateway is not in config.yaml, so that no model can read this table
        name = parse_name(entry["name"], document.place((index, "name")), defaults.catalog)
        gateway = entry.get("gateway")
        if gateway in (None, defaults.gateway):
            chosen.append((index, name))
        if gateway is not None and gateway == defaults.gateway:
            named.add(name)
    for index, name in chosen:
        if name not in named or document.value[index].get("gateway") is not None:
            yield _read_model(document, text, defaults, index, name)


def _read_model(document: Document, text: str, defaults: Defaults, index: int, name: str) -> Model:
    entry = document.value[index]
    dialect = parse_dialect(str(entry.get("dialect") or defaults.dialect), document.place((index, "dialect")))
    start = _read_start(document, index, entry.get("start"), defaults)
    moving = start is not None and is_relative(text_of(entry["start"]))
    # the lines of one item of the file, so that a change of another item is no change of this one
    lines = text.split("\n")
    first_line = document.place((index,)).line - 1
    end_line = document.place((index + 1,)).line - 1 if index + 1 < len(document.value) else len(lines)
    return Model(
        name=name,
        kind=Kind.EXTERNAL,
        path=document.path,
        line=document.place((index,)).line,
        source="\n".join(lines[first_line:end_line]).rstrip(),
        dialect=dialect,
        columns=_external_columns(document, index, entry.get("columns") or {}, dialect),
        open_columns=_is_partial(document, index, entry.get("partial_columns")),
        cron=Cron(defaults.cron),
        schedule=Schedule(start=start, start_moves=moving, start_text=text_of(entry["start"]) if moving else ""),
        checks=Checks(audits=_read_audits(document, (index, "audits"), entry.get("audits"))),
        metadata=Metadata(
            column_descriptions=_read_descriptions(document, index, entry.get("column_descriptions") or {}),
            description=str(entry.get("description") or ""),
            owner=str(entry.get("owner") or defaults.owner),
            freshness=freshness_of(document, (index, "freshness"), entry.get("freshness"), dialect, defaults.functions),
            tags=_read_texts(document, (index, "tags"), entry.get("tags")),
            grain=(
                *map(_unquote_column, _read_texts(document, (index, "grain"), entry.get("grain"))),
                *_grain_columns(_read_texts(document, (index, "grains"), entry.get("grains"))),
            ),
        ),
        stamp=str(entry.get("stamp") or ""),
    )


def _is_partial(document: Document, index: int, value: object) -> bool:
    if value not in (None, True, False):
        raise document.error((index, "partial_columns"), "`partial_columns` must be true or false.")
    return bool(value)


def _read_audits(document: Document, key_path: Path, entries: object) -> tuple[AuditCall, ...]:
    """Return the audits of `- not_null(columns := id)`, or of `- name: not_null` with a key of SQL per argument."""
    if entries is not None and not isinstance(entries, list):
        raise document.error(key_path, f"`{key_path[-1]}` must be a list.")
    calls = []
    for number, entry in enumerate(entries or []):
        text = entry
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            arguments = ", ".join(f"{key} := {_argument_sql(value)}" for key, value in entry.items() if key != "name")
            text = f"{entry['name']}({arguments})" if arguments else entry["name"]
        if not isinstance(text, str):
            raise document.error((*key_path, number), "An audit needs a `name`.", "Write `- name: not_null`.")
        calls.append(audit_call(text, document.place((*key_path, number))))
    return tuple(calls)


def _argument_sql(value: object) -> str:
    if isinstance(value, list):
        return f"({', '.join(_argument_sql(element) for element in value)})"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_start(document: Document, index: int, value: object, defaults: Defaults) -> datetime | None:
    """Return the first moment of the table's rows: downstream models without a `start` begin there."""
    if value is None:
        return None
    try:
        return defaults.resolve_date(text_of(value))
    except ValueError as error:
        raise document.error((index, "start"), f"`start`: {error}") from None


def _read_descriptions(document: Document, index: int, value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise document.error((index, "column_descriptions"), "`column_descriptions` must be a mapping of strings.")
    return tuple((str(name).lower(), str(text)) for name, text in value.items())


def _grain_columns(grain_texts: tuple[str, ...]) -> tuple[str, ...]:
    parts = (" ".join(part.split()) for text in grain_texts for part in text.strip().strip("()").split(","))
    names = (re.split(" as ", part, flags=re.IGNORECASE)[0].lower() for part in parts)
    return tuple(dict.fromkeys(map(_unquote_column, names)))


def _unquote_column(text: str) -> str:
    return ColumnName.parse(text) or text if text.startswith("`") else text


def _external_columns(document: Document, index: int, value: object, dialect: str) -> tuple[Column, ...]:
    at: Path = (index, "columns")
    if not isinstance(value, dict):
        raise document.error(at, "`columns` must be a mapping of `name: type` lines.")
    return tuple(
        Column(str(name).lower(), spark_type(str(text), dialect, document.place((*at, str(name)))))
        for name, text in value.items()
    )


def _read_texts(document: Document, key_path: Path, value: object) -> tuple[str, ...]:
    items = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise document.error(key_path, f"`{key_path[-1]}` must be a list of strings.")
    return tuple(str(item) for item in items)
