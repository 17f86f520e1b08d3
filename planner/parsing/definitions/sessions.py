"""`session_properties` of a MODEL block or of `model_defaults`: settings that hold while a model is computed."""

import re
from collections.abc import Iterable, Mapping

from mergeplan.planner.parsing.definitions.body import StatementTokens
from mergeplan.planner.parsing.definitions.properties import Property, bracket_tokens
from mergeplan.planner.parsing.sql.tokens import SourceText, split_commas, tokenize
from mergeplan.planner.parsing.sql.yaml_documents import Document

_SETTING = re.compile(r"spark\.sql\.[\w.]+", re.IGNORECASE)
_EQUALS = ("=", ":=")


def session_statements(prop: Property) -> tuple[StatementTokens, ...]:
    """Return `('spark.sql.x' = 8)` as statements before the query; raise ProjectError for a broken list."""
    statements = []
    for part in split_commas(bracket_tokens(prop)):
        at = next((index for index, token in enumerate(part) if token.text in _EQUALS), 0)
        if not at or at + 1 == len(part):
            hint = "Write `session_properties ('spark.sql.ansi.enabled' = true)`."
            raise prop.error("A session property is written `key = value`.", hint, part[0] if part else None)
        key = "".join(token.text for token in part[:at])
        value = prop.source.slice(part[at + 1 :]) if len(part) > at + 2 else part[at + 1].text
        source = SourceText(prop.source.path, "", "spark", prop.source.place(part[0]))
        statements += list(_set_statements(source, [(key, value)]))
    return tuple(statements)


def default_session(section: Mapping[str, object], document: Document) -> tuple[StatementTokens, ...]:
    statements: list[StatementTokens] = []
    for key, value in section.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        place = document.place(("model_defaults", "session_properties", key))
        statements += _set_statements(SourceText(document.path, "", "spark", place), [(key, text)])
    return tuple(statements)


def _set_statements(source: SourceText, pairs: Iterable[tuple[str, str]]) -> Iterable[StatementTokens]:
    """Return `SET key = value` for each setting of Spark's SQL; others are of other engines, or of a whole Spark."""
    for key, value in pairs:
        if _SETTING.fullmatch(key):
            set_source = SourceText(source.path, f"SET {key} = {value}", source.dialect, source.at)
            yield StatementTokens(set_source, tokenize(set_source))
