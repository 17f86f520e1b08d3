"""`session_properties` of a MODEL block or of `model_defaults`: settings that hold while a model is computed."""

import re
from collections.abc import Iterator, Mapping

from mergeplan.planner.errors import Place
from mergeplan.planner.parsing.definitions.body import StatementTokens
from mergeplan.planner.parsing.definitions.properties import Property, bracket_tokens
from mergeplan.planner.parsing.sql.tokens import SourceText, split_commas, tokenize
from mergeplan.planner.parsing.sql.yaml_documents import Document

_SETTING = re.compile(r"spark\.sql\.[\w.]+", re.IGNORECASE)
_EQUALS = ("=", ":=")


def session_statements(prop: Property) -> tuple[StatementTokens, ...]:
    """Return `('spark.sql.x' = 8)` as statements before the query; raise ProjectError for a broken list."""
    statements: list[StatementTokens] = []
    for part in split_commas(bracket_tokens(prop)):
        at = next((index for index, token in enumerate(part) if token.text in _EQUALS), 0)
        if not at or at + 1 == len(part):
            hint = "Write `session_properties ('spark.sql.ansi.enabled' = true)`."
            raise prop.error("A session property is written `key = value`.", hint, part[0] if part else None)
        key = "".join(token.text for token in part[:at])
        value = prop.source.slice(part[at + 1 :]) if len(part) > at + 2 else part[at + 1].text
        statements += _set_statement(prop.source.path, prop.source.place(part[0]), key, value)
    return tuple(statements)


def default_session(section: Mapping[str, object], document: Document) -> tuple[StatementTokens, ...]:
    statements: list[StatementTokens] = []
    for key, value in section.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        place = document.place(("model_defaults", "session_properties", key))
        statements += _set_statement(document.path, place, key, text)
    return tuple(statements)


def _set_statement(path: str, at: Place, key: str, value: str) -> Iterator[StatementTokens]:
    """Yield `SET key = value` for a setting of Spark's SQL; others are of other engines, or of a whole Spark."""
    if _SETTING.fullmatch(key):
        source = SourceText(path, f"SET {key} = {value}", "spark", at)
        yield StatementTokens(source, tokenize(source))
