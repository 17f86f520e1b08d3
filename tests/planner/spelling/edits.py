"""Edits of a query's text, one token at a time: most spell it otherwise, some make another query of it.

Nothing here knows what a token means. An edit of which Spark cannot make sense costs nothing: only texts that
mergeplan calls one query are ever compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.dialects.dialect import Dialect

_SPARK = Dialect.get_or_raise("spark")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?")
_SUFFIXES = ("L", "S", "Y", "D", "F", "BD", ".0", ".00", "e0", "::STRING", "::INT")
_OPERATORS = {
    "=": "<=> == <> < <=", "<>": "!= =", "!=": "<>", "==": "=", "<=>": "=", "<": "<= >", ">": ">= <", "<=": "<",
    ">=": ">", "+": "- * ||", "-": "+", "*": "/ DIV", "/": "DIV * %", "%": "/", "||": "+ | OR", "&": "| AND", "|": "&",
    "<<": ">>", ">>": "<< >>>", "^": "*", "!": "NOT",
}  # fmt: skip
_WORDS = {
    "LEFT": "RIGHT;FULL;LEFT OUTER;LEFT SEMI;LEFT ANTI;INNER", "RIGHT": "LEFT;RIGHT OUTER", "FULL": "LEFT;FULL OUTER",
    "INNER": "LEFT;CROSS", "SEMI": "ANTI", "ANTI": "SEMI", "CROSS": "NATURAL", "JOIN": "LEFT JOIN;CROSS JOIN;SEMI JOIN",
    "UNION": "UNION ALL;INTERSECT;UNION DISTINCT", "EXCEPT": "MINUS;EXCEPT ALL", "MINUS": "EXCEPT",
    "INTERSECT": "INTERSECT ALL", "ALL": "DISTINCT", "DISTINCT": "ALL", "AND": "OR", "OR": "AND", "ASC": "DESC",
    "DESC": "ASC", "FIRST": "LAST", "LAST": "FIRST", "ROWS": "RANGE", "RANGE": "ROWS", "LIKE": "ILIKE;RLIKE",
    "RLIKE": "REGEXP;LIKE", "ANY": "ALL;SOME", "TRUE": "FALSE;NULL;'true'", "NULL": "'NULL'", "CUBE": "ROLLUP",
    "ROLLUP": "CUBE", "IGNORE": "RESPECT", "CAST": "TRY_CAST", "TRY_CAST": "CAST", "INT": "BIGINT;STRING;INTEGER",
    "STRING": "BINARY;VARCHAR(9)", "BIGINT": "LONG;INT", "TIMESTAMP": "TIMESTAMP_NTZ;TIMESTAMP_LTZ",
    "TIMESTAMP_NTZ": "TIMESTAMP", "DAY": "DAYS;MONTH;HOUR", "MONTH": "MONTHS;DAY;MINUTE", "YEAR": "YEARS",
    "NOT": "!", "IN": "NOT IN", "EXISTS": "NOT EXISTS", "BETWEEN": "NOT BETWEEN", "PRECEDING": "FOLLOWING",
    "INCLUDE": "EXCLUDE", "SORT": "ORDER;CLUSTER", "DATE": "TIMESTAMP", "LEADING": "TRAILING;BOTH", "BOTH": "LEADING",
    "VIEW": "VIEW OUTER", "WITH": "WITH RECURSIVE",
}  # fmt: skip


@dataclass(frozen=True)
class _Place:
    """A token of a text, with those beside it."""

    text: str
    start: int
    end: int
    following: str

    @property
    def raw(self) -> str:
        return self.text[self.start : self.end]

    def replace_place(self, by: str) -> str:
        return self.text[: self.start] + by + self.text[self.end :]


def respell(text: str) -> dict[str, str]:
    """The edited texts, each with the name of its edit."""
    spans = [(token.start, token.end + 1) for token in _SPARK.tokenize(text)]
    edits: dict[str, str] = {}
    for number, (start, end) in enumerate(spans):
        after = spans[number + 1] if number + 1 < len(spans) else (end, end)
        place = _Place(text, start, end, text[slice(*after)])
        for name, edited in (
            *_token_edits(place),
            *_bracket_edits(text, spans, number),
            *_span_edits(text, spans, number),
        ):
            if edited != text:
                edits.setdefault(edited, name)
    return edits


def _token_edits(place: _Place) -> Iterator[tuple[str, str]]:
    raw = place.raw
    yield "drop", place.replace_place("")
    for other in _OPERATORS.get(raw, "").split():
        yield "operator", place.replace_place(other)
    if _WORD.fullmatch(raw):
        yield from _word_edits(place)
    elif raw.startswith("`"):
        yield "back-ticks", place.replace_place(raw.strip("`"))
        yield "case", place.replace_place(raw.swapcase())
    elif raw[0] in "'\"":
        yield from _text_edits(place)
    elif _NUMBER.fullmatch(raw) and not _WORD.match(place.text[place.end :]):
        yield from _number_edits(place)


def _word_edits(place: _Place) -> Iterator[tuple[str, str]]:
    raw = place.raw
    yield "case", place.replace_place(raw.swapcase())
    yield "case", place.replace_place(raw.capitalize())
    yield "back-ticks", place.replace_place(f"`{raw}`")
    yield "brackets", place.replace_place(f"({raw})")
    yield "quotes", place.replace_place(f"'{raw}'")
    yield "quotes", place.replace_place(f'"{raw}"')
    if place.following != "(":
        yield "call", place.replace_place(f"{raw}()")
    if _WORD.fullmatch(place.following):
        yield "AS", place.replace_place(f"{raw} AS")
    for other in filter(None, _WORDS.get(raw.upper(), "").split(";")):
        yield "word", place.replace_place(other)


def _text_edits(place: _Place) -> Iterator[tuple[str, str]]:
    raw, inner = place.raw, place.raw[1:-1]
    other = '"' if raw[0] == "'" else "'"
    yield "quotes", place.replace_place(f"{other}{inner}{other}")
    yield "quotes", place.replace_place(inner)
    yield "case of a text", place.replace_place(raw.swapcase())
    yield "escape", place.replace_place(f"r{raw}")
    yield "escape", place.replace_place(f"{raw[0]}\\{inner}{raw[0]}")
    yield "escape", place.replace_place(raw.replace("\\", "\\\\"))
    yield "blank in a text", place.replace_place(f"{raw[0]}{inner} {raw[0]}")
    yield "two texts", place.replace_place(f"{raw} {raw}")
    for word in ("DATE ", "TIMESTAMP ", "X"):
        yield "typed text", place.replace_place(word + raw)
    yield "brackets", place.replace_place(f"({raw})")


def _number_edits(place: _Place) -> Iterator[tuple[str, str]]:
    raw = place.raw
    for suffix in _SUFFIXES:
        yield "suffix", place.replace_place(raw + suffix)
    for sign in ("-", "- -", "+"):
        yield "sign", place.replace_place(sign + raw)
    yield "leading zero", place.replace_place(f"0{raw}")
    yield "quotes", place.replace_place(f"'{raw}'")
    yield "brackets", place.replace_place(f"({raw})")


def _bracket_edits(text: str, spans: list[tuple[int, int]], number: int) -> Iterator[tuple[str, str]]:
    """Brackets that are doubled, left out, or put around a call."""
    start, end = spans[number]
    if text[start:end] != "(" or (closing := _closing(text, spans, number)) is None:
        return
    last, behind = spans[closing]
    inner = text[end:last]
    yield "double brackets", f"{text[:start]}(({inner})){text[behind:]}"
    yield "no brackets", f"{text[:start]} {inner} {text[behind:]}"
    before = text[slice(*spans[number - 1])] if number else ""
    if _WORD.fullmatch(before):
        first = spans[number - 1][0]
        yield "brackets", f"{text[:first]}({text[first:behind]}){text[behind:]}"


def _span_edits(text: str, spans: list[tuple[int, int]], number: int) -> Iterator[tuple[str, str]]:
    """Brackets around some tokens, and two tokens that change places around a third."""
    start, end = spans[number]
    for length in range(2, 6):
        if number + length > len(spans):
            return
        stop = spans[number + length - 1][1]
        part = text[start:stop]
        if part.count("(") == part.count(")") and "," not in part:
            yield "brackets", f"{text[:start]}({part}){text[stop:]}"
        if length == 3:
            third = spans[number + 2]
            swapped = text[slice(*third)] + text[end : third[0]] + text[start:end]
            yield "swap", text[:start] + swapped + text[third[1] :]


def _closing(text: str, spans: list[tuple[int, int]], number: int) -> int | None:
    depth = 0
    for index in range(number, len(spans)):
        raw = text[slice(*spans[index])]
        depth += (raw == "(") - (raw == ")")
        if depth == 0:
            return index
    return None
