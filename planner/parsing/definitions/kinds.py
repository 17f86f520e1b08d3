"""The `kind ...` of a MODEL block, and its settings."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot.dialects.dialect import Dialect
from sqlglot.time import format_time
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import DBT_NULLS, PANDAS_NULLS, PROPERTIES, Model, Seed
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.parsing.definitions import incremental
from mergeplan.planner.parsing.definitions.custom_kind import CUSTOM, read_custom
from mergeplan.planner.parsing.definitions.incremental import KEYS, POLICY_KEYS, READERS
from mergeplan.planner.parsing.definitions.materializations.classes import Materializations
from mergeplan.planner.parsing.definitions.properties import (
    Property,
    bracket_tokens,
    read_boolean,
    read_properties,
    read_settings,
    read_value,
    word,
    words,
)
from mergeplan.planner.parsing.sql.tokens import SourceText, closing, did_you_mean, split_commas

LATER = frozenset(("MANAGED", "INCREMENTAL"))
ALIASES = {"SCD_TYPE_2": Kind.SCD_TYPE_2_BY_TIME}
_CSV_KEYS = ("delimiter", "quotechar", "encoding", "na_values", "keep_default_na")
_CSV_LATER = ("doublequote", "escapechar", "skipinitialspace", "lineterminator")


def kind_named(text: str, place: Place) -> Kind:
    if text.upper() in Kind.__members__:
        return Kind[text.upper()]
    if text.upper() in ALIASES:
        return ALIASES[text.upper()]
    if text.upper() in LATER:
        raise ProjectError(f"The kind {text.upper()} is not supported yet.", place=place)
    if text.upper() == CUSTOM:
        raise ProjectError("CUSTOM needs a `materialization`.", place=place)
    raise ProjectError(f"`{text}` is not a kind of model.", place=place, hint=did_you_mean(text, [*Kind.__members__]))


def apply_kind(model: Model, kind_prop: Property, find_materializations: Callable[[], Materializations]) -> Model:
    """Return the model with its `kind NAME (settings)`; raise ProjectError for wrong or missing settings."""
    tail = kind_prop.value[1:]
    if tail and (tail[0].token_type is not TokenType.L_PAREN or closing(tail, 0) != len(tail) - 1):
        raise kind_prop.error(
            f"`{tail[0].text}` is not expected after the kind.", "Is a comma missing before it?", tail[0]
        )
    if kind_prop.value[0].text.upper() == CUSTOM:
        comes_to = read_custom(kind_prop, tail[1:-1], find_materializations())
        block = f"the kind {comes_to.kind}, to which the materialization `{comes_to.materialization}` comes"
        kind_settings = read_settings([*comes_to.stated, *comes_to.derived], SETTINGS[comes_to.kind][0], (), block)
        return _apply_kind_settings(
            replace(model, materialization=comes_to.materialization), comes_to.kind, kind_prop, kind_settings
        )
    kind = kind_named(kind_prop.value[0].text, kind_prop.source.place(kind_prop.value[0]))
    later = ("dialect",) if kind.is_incremental else ()
    kind_properties = read_properties(kind_prop.source, incremental.remove_when_commas(tail[1:-1]))
    return _apply_kind_settings(
        model, kind, kind_prop, read_settings(kind_properties, SETTINGS[kind][0], later, f"the kind {kind}")
    )


def _apply_kind_settings(model: Model, kind: Kind, kind_prop: Property, options: dict[str, Property]) -> Model:
    rows = {key: partial(read_value, default=row.default) for key, row in PROPERTIES.items() if kind in row.kinds}
    readers: dict[str, Callable[[Property], Any]] = {**(READERS if kind.is_incremental else {}), **rows}
    values = {key: readers[key](prop) for key, prop in options.items() if key in readers}
    keeps = kind.keeps_history
    values = {"forward_only": keeps or kind.traits.always_forward_only, "disable_restatement": keeps, **values}
    return SETTINGS[kind][1](replace_settings(model, {"kind": kind, **values}), kind_prop, options)


def _setting_keys(kind: Kind) -> tuple[str, ...]:
    rows = (row.key for row in PROPERTIES.values() if kind in row.kinds)
    return *KEYS.get(kind, ()), *rows, *(POLICY_KEYS if kind.is_incremental else ())


def _apply_view(model: Model, kind_prop: Property, options: dict[str, Property]) -> Model:
    if "materialized" in options and read_boolean(options["materialized"]):
        raise options["materialized"].error("Materialized views are not supported, because Spark has none. Use FULL.")
    return model


def _time_range(model: Model, kind_prop: Property, options: dict[str, Property]) -> Model:
    if "time_column" not in options:
        hint = "Write `kind INCREMENTAL_BY_TIME_RANGE (time_column event_date)`."
        raise kind_prop.error("INCREMENTAL_BY_TIME_RANGE needs a `time_column`.", hint)
    column, time_format = _time_column(options["time_column"])
    return replace(model, by_time=replace(model.by_time, time_column=column, time_format=time_format))


def _time_column(prop: Property) -> tuple[str, str]:
    """Return the column of `event_date` or `(event_date, '%Y-%m-%d')`, and its format as a Spark pattern."""
    if prop.value[0].token_type is not TokenType.L_PAREN:
        return word(prop).lower(), ""
    parts = split_commas(prop.value[1:-1])
    if not 1 <= len(parts) <= 2 or any(len(part) != 1 for part in parts):
        raise prop.error("`time_column` is a column, or `(column, 'format')`.")
    column = parts[0][0].text.lower()
    return column, spark_pattern(parts[1][0].text, prop.source.dialect) if len(parts) == 2 else ""


def spark_pattern(text: str, dialect: str) -> str:
    """Return a time format as a Spark pattern: `%Y-%m-%d` is read in any dialect, others in the file's dialect."""
    spark = Dialect.get_or_raise("spark")
    python = text
    if "%" not in text:
        if dialect in ("spark", "databricks", "hive"):
            return text
        file_dialect = Dialect.get_or_raise(dialect)
        python = format_time(text, file_dialect.TIME_MAPPING, file_dialect.TIME_TRIE) or text
    return format_time(python, spark.INVERSE_TIME_MAPPING, spark.INVERSE_TIME_TRIE) or python


def _apply_seed(model: Model, kind_prop: Property, options: dict[str, Property]) -> Model:
    """Return the model with its seed without the content, which is read later: this stage does no I/O."""
    if "path" not in options:
        raise kind_prop.error("SEED needs a `path`.", "Write `kind SEED (path '../seeds/data.csv')`.")
    csv = options.get("csv_settings")
    pairs = read_properties(csv.source, bracket_tokens(csv)) if csv else []
    csv_settings = read_settings(pairs, _CSV_KEYS, _CSV_LATER, "csv_settings") if csv else {}
    for key in ("delimiter", "quotechar"):
        if key in csv_settings and len(_csv_character(csv_settings[key])) != 1:
            raise csv_settings[key].error(f"`{key}` must be a single character.")
    is_dbt = "dbt_seed" in options and read_boolean(options["dbt_seed"])

    def character(key: str, default: str) -> str:
        return _csv_character(csv_settings[key]) if key in csv_settings else default

    texts = character("delimiter", ","), character("quotechar", '"'), character("encoding", "utf-8")
    nulls = DBT_NULLS if is_dbt else _null_texts(csv_settings)
    path = _seed_path(options["path"], kind_prop.source)
    return replace(model, seed=Seed(path, "", (), *texts, nulls, is_dbt=is_dbt))


def _csv_character(prop: Property) -> str:
    return "\t" if prop.text == "\\t" else prop.text


def _null_texts(options: dict[str, Property]) -> tuple[str, ...]:
    has_defaults = "keep_default_na" not in options or read_boolean(options["keep_default_na"])
    model_nulls = words(options["na_values"]) if "na_values" in options else ()
    return tuple(dict.fromkeys((*model_nulls, *(PANDAS_NULLS if has_defaults else ()))))


def _seed_path(prop: Property, source: SourceText) -> str:
    """Return a seed's path, from the model's file or `$root/`; raise ProjectError outside the project."""
    text = word(prop).replace("\\", "/")
    folder = posixpath.dirname(source.path)
    path = posixpath.normpath(
        text.removeprefix("$root/") if text.startswith("$root/") else posixpath.join(folder, text)
    )
    if path.startswith("../") or posixpath.isabs(path):
        hint = "Put it below the project's root, and write its path from this file (`../seeds/a.csv`) or from the root "
        raise prop.error(f"The seed `{text}` is outside the project.", f"{hint}(`$root/seeds/a.csv`).")
    return path


_Maker = Callable[[Model, Property, dict[str, Property]], Model]
_MAKERS: dict[Kind, _Maker] = {
    Kind.SEED: _apply_seed,
    Kind.VIEW: _apply_view,
    Kind.INCREMENTAL_BY_TIME_RANGE: _time_range,
}
# The settings that each kind takes, and what makes a model of them.
SETTINGS: Mapping[Kind, tuple[tuple[str, ...], _Maker]] = {
    kind: (_setting_keys(kind), _MAKERS.get(kind, incremental.apply_settings)) for kind in Kind
}
