"""`freshness` of MODEL blocks, of external_models.yaml and of dbt's sources."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.metadata import Freshness
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.definitions.properties import Property, bracket_tokens, read_properties, read_settings
from mergeplan.planner.parsing.sql.tokens import SourceText, did_you_mean, parse_tokens, statements, tokenize
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path

KEYS = ("warn_after", "error_after", "loaded_at", "filter")
YAML_KEYS = (*KEYS, "query")
AGES = ("warn_after", "error_after")
UNITS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
LONGEST = 10 * 366 * 86_400  # seconds
_AGE = re.compile(r"(\d{1,9})\s*(minute|hour|day|week)s?", re.IGNORECASE)
MakeError = Callable[[str, str], ProjectError]
_EXAMPLE = "Write `freshness (warn_after '6 hours', error_after '1 day')`."


def read_freshness(prop: Property) -> Freshness:
    """Return `freshness (...)` of a MODEL block; raise ProjectError for a wrong one."""
    settings = read_settings(read_properties(prop.source, bracket_tokens(prop)), KEYS, (), "freshness")
    values = {
        key: _read_setting(key, _expression_text(setting), prop.source, setting.error)
        for key, setting in settings.items()
    }
    return _build_freshness(values, prop.error)


def freshness_of(
    document: Document, key_path: Path, value: object, dialect: str, functions: frozenset[str] = frozenset()
) -> Freshness | None:
    """Return the mapping of an item of a YAML file; raise ProjectError for a wrong one.

    `functions` are those that its SQL may call beside Spark's own: Spark would run any of them as the operator.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise document.error(key_path, "`freshness` must be a mapping.", f"Keys: {', '.join(YAML_KEYS)}.")
    values: dict[str, int | str] = {}
    source = SourceText("", "", dialect, functions=functions)
    for key, setting in value.items():
        make_error = partial(document.error, (*key_path, str(key)))
        if key not in YAML_KEYS:
            raise make_error(f"`{key}` is not a key of `freshness`.", did_you_mean(str(key), YAML_KEYS))
        values[key] = _read_setting(key, str(setting), source, make_error)
    return _build_freshness(values, partial(document.error, key_path))


def is_readable(settings: Mapping[str, str]) -> bool:
    """Return False for settings of dbt that are no SQL of Spark, or call other functions than Spark's own."""
    try:
        freshness_of(Document("", settings, {}), (), settings, "spark")
    except ProjectError:
        return False
    return True


def check_freshness_kind(model: Model, prop: Property) -> None:
    if model.kind.is_view:
        if model.metadata.freshness is None or not model.metadata.freshness.asks_rows:
            raise prop.error("A VIEW has no last write.", "Add `loaded_at COLUMN` to `freshness`.")
    elif model.kind.is_seed or not model.kind.is_stored:
        raise prop.error(f"A {model.kind} cannot have `freshness`: no run fills a table of it.", "Remove it.")


def _expression_text(prop: Property) -> str:
    is_quoted = len(prop.value) == 1 and prop.value[0].token_type is TokenType.IDENTIFIER
    return ColumnName(prop.text).key if is_quoted else prop.text


def _read_setting(key: str, text: str, source: SourceText, make_error: MakeError) -> int | str:
    if key in AGES:
        seconds = parse_age(text)
        if seconds is None:
            raise make_error(f"`{key}` must be a number of minutes, hours, days or weeks, not `{text}`.", _EXAMPLE)
        return seconds
    if key != "query" and (name := ColumnName.parse(text)):
        return name.key
    try:
        source = replace(source, path="", text=text)
        tokens = tokenize(source)
        tree = parse_tokens(source, tokens, f"`{key}`")
    except ProjectError as error:
        raise make_error(error.message, error.hint) from None
    wanted_type = exp.Query if key == "query" else exp.Condition
    if not isinstance(tree, wanted_type) or len(statements(tokens)) > 1:
        noun = "a query" if key == "query" else "a column or an expression"
        raise make_error(f"`{key}` must be {noun}, not `{text}`.", "")
    if key != "query" and tree.find(exp.Query):
        raise make_error(f"`{key}` must not read other tables.", "Write `query` in external_models.yaml.")
    if any("/" in table.name for table in tree.find_all(exp.Table)):
        raise make_error(f"`{key}` must not read files by their path.", "Let a table have them.")
    return tree.sql("spark")


def parse_age(text: str) -> int | None:
    """Return `6 hours` in seconds; None for any other text, and for an age under a minute or over ten years."""
    match = _AGE.fullmatch(text.strip())
    seconds = int(match[1]) * UNITS[match[2].lower()] if match else 0
    return seconds if 60 <= seconds <= LONGEST else None


def _build_freshness(values: Mapping[str, Any], make_error: MakeError) -> Freshness:
    freshness = Freshness(**values)
    if not freshness.warn_after and not freshness.error_after:
        raise make_error("`freshness` has neither `warn_after` nor `error_after`.", _EXAMPLE)
    if freshness.error_after and freshness.warn_after > freshness.error_after:
        raise make_error("`warn_after` is longer than `error_after`, so that it would never warn.", _EXAMPLE)
    if freshness.filter and not freshness.loaded_at:
        raise make_error("`filter` needs `loaded_at`: a last write is that of the whole table.", "Add `loaded_at`.")
    if freshness.query and freshness.loaded_at:
        raise make_error("`query` and `loaded_at` do not go together.", "Remove one of them.")
    return freshness
