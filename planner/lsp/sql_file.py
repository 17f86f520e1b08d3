"""A SQL file in parts: the tokens of its block, and its query with macros blanked out; all offsets are the file's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.lsp.texts import Span
from mergeplan.planner.parsing.definitions.common_blocks import is_block
from mergeplan.planner.parsing.sql.tokens import (
    QUERY_BEGINS,
    closing,
    create_source,
    split_commas,
    statements,
    tokenize,
)

LARGEST = 1_000_000  # characters of a text that is judged while it is typed
MOST_TOKENS = 150_000
_JINJA = re.compile(r"\{\{|\{%|\bJINJA_", re.IGNORECASE)
_CALL = re.compile(r"@\w+\s*\(")


@dataclass(frozen=True)
class BlockProperty:
    """A property of a block: its key in lower case, and the tokens of its value."""

    key: str
    at: Token
    value: tuple[Token, ...]

    @property
    def span(self) -> Span:
        last = self.value[-1] if self.value else self.at
        return Span(self.at.start, last.end + 1)


@dataclass(frozen=True)
class SqlFile:
    """The parts of a file; `query` is None where there is none, or where it cannot be read."""

    text: str
    dialect: str = "spark"
    tokens: tuple[Token, ...] = ()
    statements: tuple[tuple[Token, ...], ...] = ()
    properties: tuple[BlockProperty, ...] = ()
    block: Span | None = None
    query: exp.Query | None = None
    blanked: tuple[Span, ...] = field(default=())

    def property(self, key: str) -> BlockProperty | None:
        return next((prop for prop in self.properties if prop.key == key), None)

    def has_blanked_word(self, word: str) -> bool:
        """Return True if a macro's call, whose meaning is not read here, contains the word."""
        pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
        return any(pattern.search(self.text, span.start, span.end) for span in self.blanked)


def read_sql_file(path: str, text: str, dialect: str) -> SqlFile:
    """Return the parts of a file as far as they can be read; never raise."""
    if len(text) > LARGEST:
        return SqlFile(text)
    try:
        source = create_source(path, text, dialect)
        tokens = tuple(tokenize(source))
    except ProjectError:
        return SqlFile(text)
    if len(tokens) > MOST_TOKENS:
        return SqlFile(text, source.dialect)
    parts = tuple(tuple(statement) for statement in statements(tokens))
    file = SqlFile(text, source.dialect, tokens, parts)
    if parts and any(is_block(parts[0], word) for word in ("MODEL", "AUDIT")):
        first = parts[0]
        end = closing(first, 1)
        values = [part for part in split_commas(first[2:end]) if part]
        properties = tuple(BlockProperty(part[0].text.lower(), part[0], tuple(part[1:])) for part in values)
        span = Span(first[0].start, (first[end] if end is not None else first[-1]).end + 1)
        file = SqlFile(text, source.dialect, tokens, parts, properties, span)
    query = next((part for part in parts[1:] if part[0].text.upper() in QUERY_BEGINS), None) or _find_created_query(
        parts
    )
    if query is None:
        return file
    span = Span(query[0].start, query[-1].end + 1)
    tree, blanked = _parse_query(text, span, source.dialect)
    return SqlFile(text, source.dialect, tokens, parts, file.properties, file.block, tree, blanked)


def _find_created_query(parts: tuple[tuple[Token, ...], ...]) -> tuple[Token, ...] | None:
    for part in parts:
        if part[0].text.upper() == "CREATE":
            at = next((index for index, token in enumerate(part) if token.text.upper() == "AS"), len(part))
            return part[at + 1 :] or None
    return None


def _parse_query(text: str, span: Span, dialect: str) -> tuple[exp.Query | None, tuple[Span, ...]]:
    """Return the query between two offsets, with the calls of macros as NULL, and the places of these."""
    query = text[span.start : span.end]
    if _JINJA.search(query):
        return None, (span,)
    blanked = tuple(Span(span.start + start, span.start + end) for start, end in _macro_calls(query))
    spaces = re.sub(r"[^\n]", " ", text[: span.start])
    for part in reversed(blanked):
        start, end = part.start - span.start, part.end - span.start
        query = query[:start] + "NULL" + re.sub(r"[^\n]", " ", query[start + 4 : end]) + query[end:]
    try:
        tree = sqlglot.parse_one(spaces + query, dialect=dialect)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, IndexError):
        return None, blanked
    return (tree if isinstance(tree, exp.Query) else None), blanked


def _macro_calls(query: str) -> Iterator[tuple[int, int]]:
    """Yield the places of macro calls with arguments in brackets; the outermost calls only."""
    at = 0
    while match := _CALL.search(query, at):
        depth, end = 0, len(query)
        for index in range(match.end() - 1, len(query)):
            depth += (query[index] == "(") - (query[index] == ")")
            if depth == 0:
                end = index + 1
                break
        yield match.start(), end
        at = end
