"""Lay out a MODEL or AUDIT block: one property per line, long lists one item per line, comments in their places."""

import re
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, closing, split_commas, tokenize

_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`"
COMMENT = re.compile(rf"{_QUOTED}|(?P<comment>--[^\n]*|/\*.*?\*/)", re.DOTALL)
NESTED = ("kind", "columns")


def comment_texts(text: str) -> list[str]:
    """Return the texts of the comments in SQL, in order, without the marks at the beginning and end."""
    comments = (match["comment"] for match in COMMENT.finditer(text) if match["comment"])
    return [
        _comment_text(comment) for comment in comments if not comment.startswith("/*+")
    ]  # a hint is part of its query


def restore_line_comments(text: str, written: str) -> str:
    """Return a generated text with `-- note` where `written` has that in place of `/* note */`; it ends its line."""
    line_comments: dict[str, list[str]] = {}
    for comment in _find_comments(written):
        if comment.startswith("--"):
            line_comments.setdefault(_comment_text(comment), []).append(comment.rstrip())
    parts, at = list[str](), 0
    for match in COMMENT.finditer(text):
        comment = match["comment"]
        if not comment or comment.startswith("--") or not (originals := line_comments.get(_comment_text(comment))):
            continue
        parts += [text[at : match.start()], originals.pop(0)]
        at = match.end()
        if text[at:].partition("\n")[0].strip():
            line = text[: match.start()].rpartition("\n")[2]
            parts.append(f"\n{line[: len(line) - len(line.lstrip())]}")
            at += len(text[at:]) - len(text[at:].lstrip(" "))
    return "".join([*parts, text[at:]])


def header_text(source: SourceText, tokens: Tokens, indent: int, width: int) -> str:
    """Return `MODEL (...)` in the standard layout; the tokens and the comments do not change."""
    end = closing(tokens, 1)
    prefix = source.text[: tokens[0].start].strip()
    if end is None or end + 1 < len(tokens):
        return source.text.strip()
    suffix = source.text[tokens[end].end + 1 :].strip()
    body = _format_items(_Layout(source, indent, width), tokens[2:end], tokens[1].end + 1, tokens[end].start, 1)
    head = f"{prefix}\n" if prefix else ""
    text = f"{head}{tokens[0].text.upper()} (\n{body}\n)" + (f" {suffix}" if suffix else "")
    new_tokens = tokenize(SourceText(source.path, text, source.dialect))
    return text if _token_texts(new_tokens) == _token_texts(tokens) else source.text.strip()


def _token_texts(tokens: Tokens) -> list[str]:
    texts = [token.text for token in tokens]
    pairs = zip(texts, [*texts[1:], ""], strict=True)
    return [text.lower() for text, next_text in pairs if not (text == "," and next_text == ")")]


@dataclass(frozen=True)
class _Layout:
    """The text of a file, and the layout of its blocks."""

    source: SourceText
    indent: int
    width: int


def _format_items(layout: _Layout, tokens: Tokens, begin: int, finish: int, depth: int, *, angles: bool = False) -> str:
    parts = [part for part in split_commas(tokens, angles=angles) if part]
    lines: list[str] = []
    source, space = layout.source, " " * layout.indent * depth
    at = begin
    for index, part in enumerate(parts):
        is_last = index + 1 == len(parts)
        following = finish if is_last else parts[index + 1][0].start
        if index == 0:
            lines += [f"{space}{comment}" for comment in _find_comments(source.text[at : part[0].start])]
        behind, above = _split_comments(source.text[part[-1].end + 1 : following])
        item = _format_item(layout, part, depth)
        lines.append(f"{space}{item}{'' if is_last else ','}{f' {behind}' if behind else ''}")
        lines += [f"{space}{comment}" for comment in above]
    return "\n".join(lines)


def _format_item(layout: _Layout, part: Tokens, depth: int) -> str:
    source, indent = layout.source, layout.indent
    raw = source.text[part[0].start : part[-1].end + 1]
    key = part[0].text.lower() if depth == 1 else source.slice(part[:1])
    opening = next((i for i, token in enumerate(part) if i and token.token_type is TokenType.L_PAREN), None)
    whole = opening is not None and closing(part, opening) == len(part) - 1
    nested = depth == 1 and key in NESTED
    line = f"{key}{_join_tokens(source, part)[len(part[0].text) :]}" if depth == 1 else _join_tokens(source, part)
    if opening is None or not whole or (depth > 1 and opening != 1):
        return raw if comment_texts(raw) else line
    fits = len(line) + indent * depth < layout.width and not comment_texts(raw)
    inner = part[opening + 1 : -1]
    if not inner or (fits and not nested):
        return raw if comment_texts(raw) and not inner else line
    head = f"{key}{_join_tokens(source, part[: opening + 1])[len(part[0].text) :].rstrip('(').rstrip()} ("
    begin, finish = part[opening].end + 1, part[-1].start
    body = _format_items(layout, inner, begin, finish, depth + 1, angles=key == "columns")
    return f"{head}\n{body}\n{' ' * indent * depth})"


def _join_tokens(source: SourceText, part: Tokens) -> str:
    """Return the tokens as written, with one space where there was any, but none inside brackets."""
    text = source.text[part[0].start : part[0].end + 1]
    for previous, token in pairwise(part):
        apart = token.start > previous.end + 1
        opens = previous.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
        closes = token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.COMMA)
        comma = previous.token_type is TokenType.COMMA
        blank = comma or (apart and not opens and not closes)
        text += (" " if blank and not closes else "") + source.text[token.start : token.end + 1]
    return text


def _split_comments(gap: str) -> tuple[str, list[str]]:
    """Return the comment after an item on its line, and those on the following lines."""
    line, newline, following_lines = gap.partition("\n")
    behind = _find_comments(line)
    if any(not comment.startswith("--") and line.count("/*") > line.count("*/") for comment in behind) or "/*" in line:
        comments = _find_comments(gap)
        return (comments[0] if comments and behind == comments[:1] else ""), comments[1:] if behind == comments[
            :1
        ] else comments
    return " ".join(behind), _find_comments(following_lines) if newline else []


def _find_comments(gap: str) -> list[str]:
    return [match["comment"] for match in COMMENT.finditer(gap) if match["comment"]]


def _comment_text(comment: str) -> str:
    inner = comment[2:] if comment.startswith("--") else comment[2:-2]
    return " ".join(inner.split())
