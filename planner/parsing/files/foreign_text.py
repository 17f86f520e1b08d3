"""Queries that another tool wrote, read by mergeplan: find the parts that it would take for a macro."""

import re
from contextlib import suppress

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_MACRO = re.compile(r"@[{'\w]")
_FORMATS = "avro|binaryfile|csv|delta|iceberg|json|orc|parquet|text|xml"
_FILES = re.compile(rf"(?<![\w`.])`?(?:{_FORMATS})`?\s*\.\s*`([^`/]*+/[^`]*+)`", re.IGNORECASE)
_BEGINS_WITH_WORD = re.compile(r"(?:[\s;]++|--[^\n\\]*+\n)*+[^\W\d]")  # as most queries: they need no tokens
_LONGEST = 20


def find_macro(text: str) -> str:
    """Return the text, up to the end of its line, that mergeplan would take for a macro outside of constants, or ''."""
    bare = _without_constants(text) if "@" in text else ""
    match = _MACRO.search(bare)
    return bare[match.start() : match.start() + _LONGEST].partition("\n")[0].strip() if match else ""


def find_files(text: str) -> str:
    """Return the path of files that a query reads in place of a table: parquet.`s3://bucket/items`, or ''."""
    match = _FILES.search(_without_constants(text)) if "`" in text and "/" in text else None
    return match[1] if match else ""


def is_blank(text: str) -> bool:
    return not _BEGINS_WITH_WORD.match(text) and not _without_constants(text).strip(" \n;")


def without_end(text: str) -> str:
    """Return a query without the semicolons at its end, and the comments behind them."""
    end = len(text)
    with suppress(SqlglotError):
        for token in reversed(Dialect.get_or_raise("spark").tokenize(text)):
            if token.token_type is not TokenType.SEMICOLON:
                break
            end = token.start
    return text[:end].strip()


def _without_constants(text: str) -> str:
    """Return a text with `'` for each string and without comments; return an unreadable text unchanged."""
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except SqlglotError:
        return text
    bare, end = [], 0
    for token in tokens:
        between = "\n" if "\n" in text[end : token.start] else " "
        bare.append(between if token.start > end else "")
        bare.append("'" if token.token_type in STRINGS else text[token.start : token.end + 1])
        end = token.end + 1
    return "".join(bare)
