"""`model_defaults` of config.yaml as the properties and statements of models that do not set them."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import read_setting, replace_settings
from mergeplan.planner.parsing.definitions.body import Around, StatementTokens
from mergeplan.planner.parsing.definitions.properties import Property
from mergeplan.planner.parsing.sql.tokens import SourceText, statements, tokenize
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path

AT = "model_defaults"
MERGED = ("physical_properties", "virtual_properties")
AS_PROPERTIES = ("kind", "storage_format", "table_format", *MERGED, "allow_partials", "enabled", "interval_unit",
                 "cron_tz", "gateway")  # fmt: skip
AROUND = ("pre_statements", "post_statements", "on_virtual_update")
_PLAIN = re.compile(r"[A-Za-z_][\w.]*|\d+")


def default_properties(section: Mapping[str, Any], document: Document) -> tuple[Property, ...]:
    """Return the defaults parsed as if in each model's block; raise ProjectError for a kind without a name."""
    properties = []
    for key in AS_PROPERTIES:
        value = section.get(key)
        if value is None or (key == "kind" and not isinstance(value, dict)):
            continue
        text = _format_kind(value, document) if key == "kind" else _format_value(value)
        source = SourceText(document.path, f"{key} {text}", "spark", document.place((AT, key)))
        first, *value_tokens = tokenize(source)
        properties.append(Property(source, first, tuple(value_tokens)))
    return tuple(properties)


def default_statements(section: Mapping[str, Any], document: Document, dialect: str, catalog: str) -> Around:
    pre_statements, post_statements, views = (
        statement_parts(section.get(key) or (), document, (AT, key), dialect, catalog) for key in AROUND
    )
    return Around(pre_statements, post_statements, views)


def statement_parts(
    texts: Iterable[str] | str, document: Document, key_path: Path, dialect: str, catalog: str
) -> tuple[StatementTokens, ...]:
    parts = []
    for index, text in enumerate([texts] if isinstance(texts, str) else texts):
        source = SourceText(document.path, text, dialect, document.place((*key_path, index)), catalog)
        parts += [StatementTokens(source, tokens) for tokens in statements(tokenize(source))]
    return tuple(parts)


def select_defaults(defaults: Iterable[Property], own: Iterable[str]) -> tuple[Property, ...]:
    keys = set(own)
    return tuple(prop for prop in defaults if prop.key not in keys)


def merge_properties(model: Model, general: Model) -> Model:
    """Return the model with the properties of tables and views that the defaults, read into `general`, add to it."""
    merged = {key: dict(read_setting(general, key)) | dict(read_setting(model, key)) for key in MERGED}
    return replace_settings(model, {key: tuple(sorted(pairs.items())) for key, pairs in merged.items()})


def _format_kind(value: dict[str, Any], document: Document) -> str:
    """Return `{name: X, setting: y}` as `X (setting y)`."""
    name, settings = value.get("name"), {key: setting for key, setting in value.items() if key != "name"}
    if not isinstance(name, str):
        raise document.error((AT, "kind"), "The `kind` of `model_defaults` has no `name`.")
    if name.upper() in {kind for kind in Kind if not kind.has_query}:
        raise ProjectError(f"`{name}` cannot be the default kind.", place=document.place((AT, "kind")))
    listed = ", ".join(f"{key} {_format_setting(key, setting)}" for key, setting in settings.items())
    return f"{name} ({listed})" if listed else name


def _format_setting(key: str, value: Any) -> str:
    if key == "materialization_properties" and isinstance(value, dict):
        return f"({', '.join(f'{_quote_text(name)} = {_format_literal(item)}' for name, item in value.items())})"
    if isinstance(value, dict) and "column" in value:  # of a time column
        parts = [value["column"], *([value["format"]] if "format" in value else [])]
        return f"({', '.join(_format_scalar(part) for part in parts)})"
    return _format_value(value)


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(_format_scalar(element) for element in value)})"
    if isinstance(value, dict):
        return f"({', '.join(f'{key} = {_quote_text(element)}' for key, element in value.items())})"
    return _format_scalar(value)


def _format_scalar(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if _PLAIN.fullmatch(text) and not isinstance(value, date) else _quote_text(text)


def _format_literal(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_format_literal, value))})"
    return str(value).lower() if isinstance(value, bool | int | float) else _quote_text(value)


def _quote_text(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
