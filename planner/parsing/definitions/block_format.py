"""The layout of a MODEL or AUDIT block: one property a line, long lists one item a line, comments where they stood."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from planner.parsing.sql.tokens import SourceText, Tokens, closing, split, tokenize

_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`"
COMMENT = re.compile(rf"{_QUOTED}|(?P<comment>--[^\n]*|/\*.*?\*/)", re.DOTALL)
NESTED = ("kind", "columns")


def comment_texts(text: str) -> list[str]:
    """What the comments of a SQL text say, in order; a mark at the line's begin or end says nothing."""
    found = (match["comment"] for match in COMMENT.finditer(text) if match["comment"])
    return [_said(each) for each in found if not each.startswith("/*+")]  # a hint is part of its query


def header_text(source: SourceText, tokens: Tokens, indent: int, width: int) -> str:
    """`MODEL (...)` laid out anew; the tokens and the comments stay what they are."""
    end = closing(tokens, 1)
    before = source.text[: tokens[0].start].strip()
    if end is None or end + 1 < len(tokens):
        return source.text.strip()
    after = source.text[tokens[end].end + 1 :].strip()
    body = _items(source, tokens[2:end], tokens[1].end + 1, tokens[end].start, 1, indent, width)
    head = f"{before}\n" if before else ""
    text = f"{head}{tokens[0].text.upper()} (\n{body}\n)" + (f" {after}" if after else "")
    again = tokenize(SourceText(source.path, text, source.dialect))
    return text if _words(again) == _words(tokens) else source.text.strip()


def _words(tokens: Tokens) -> list[str]:
    """What the tokens say, but for a comma before a bracket that closes."""
    texts = [token.text for token in tokens]
    return [
        text.lower() for text, after in zip(texts, [*texts[1:], ""], strict=True) if not (text == "," and after == ")")
    ]


def _items(
    source: SourceText,
    tokens: Tokens,
    begin: int,
    finish: int,
    depth: int,
    indent: int,
    width: int,
    *,
    angles: bool = False,
) -> str:
    """The items of a bracket, each on its line; comments stand above an item or behind it."""
    parts = [part for part in split(tokens, angles=angles) if part]
    lines: list[str] = []
    space = " " * indent * depth
    at = begin
    for index, part in enumerate(parts):
        is_last = index + 1 == len(parts)
        following = finish if is_last else parts[index + 1][0].start
        if index == 0:
            lines += [f"{space}{each}" for each in _comments(source.text[at : part[0].start])]
        behind, above = _behind(source.text[part[-1].end + 1 : following])
        item = _item(source, part, depth, indent, width)
        lines.append(f"{space}{item}{'' if is_last else ','}{f' {behind}' if behind else ''}")
        lines += [f"{space}{each}" for each in above]
    return "\n".join(lines)


def _item(source: SourceText, part: Tokens, depth: int, indent: int, width: int) -> str:
    """`key value` in one line, or its list one item a line."""
    raw = source.text[part[0].start : part[-1].end + 1]
    key = part[0].text.lower() if depth == 1 else source.slice(part[:1])
    opening = next((i for i, token in enumerate(part) if i and token.token_type is TokenType.L_PAREN), None)
    whole = opening is not None and closing(part, opening) == len(part) - 1
    nested = depth == 1 and key in NESTED
    line = f"{key}{_line(source, part)[len(part[0].text) :]}" if depth == 1 else _line(source, part)
    if opening is None or not whole or (depth > 1 and opening != 1):
        return raw if comment_texts(raw) else line
    fits = len(line) + indent * depth < width and not comment_texts(raw)
    inner = part[opening + 1 : -1]
    if not inner or (fits and not nested):
        return raw if comment_texts(raw) and not inner else line
    head = f"{key}{_line(source, part[: opening + 1])[len(part[0].text) :].rstrip('(').rstrip()} ("
    begin, finish = part[opening].end + 1, part[-1].start
    body = _items(source, inner, begin, finish, depth + 1, indent, width, angles=key == "columns")
    return f"{head}\n{body}\n{' ' * indent * depth})"


def _line(source: SourceText, part: Tokens) -> str:
    """The tokens as they are written, with one blank where there was any, none inside brackets."""
    text = source.text[part[0].start : part[0].end + 1]
    for before, token in pairwise(part):
        apart = token.start > before.end + 1
        opens = before.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
        closes = token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.COMMA)
        comma = before.token_type is TokenType.COMMA
        blank = comma or (apart and not opens and not closes)
        text += (" " if blank and not closes else "") + source.text[token.start : token.end + 1]
    return text


def _behind(gap: str) -> tuple[str, list[str]]:
    """The comment that stands behind an item on its line, and those on lines of their own after it."""
    line, newline, rest = gap.partition("\n")
    behind = _comments(line)
    if any(not each.startswith("--") and line.count("/*") > line.count("*/") for each in behind) or "/*" in line:
        found = _comments(gap)
        return (found[0] if found and behind == found[:1] else ""), found[1:] if behind == found[:1] else found
    return " ".join(behind), _comments(rest) if newline else []


def _comments(gap: str) -> list[str]:
    return [match["comment"] for match in COMMENT.finditer(gap) if match["comment"]]


def _said(comment: str) -> str:
    inner = comment[2:] if comment.startswith("--") else comment[2:-2]
    return " ".join(inner.split())
