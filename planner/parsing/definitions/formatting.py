"""Format SQL files: the MODEL and AUDIT blocks, and their queries. Pure: text in, text out.

The meaning of a file never changes. Macros are kept as they are. A file that cannot be formatted so that it parses to
the same tree with the same comments is left as it is, and the reason is reported.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.definitions.block_format import (
    COMMENT,
    comment_texts,
    header_text,
    restore_line_comments,
)
from mergeplan.planner.parsing.definitions.body import StatementTokens
from mergeplan.planner.parsing.sql import tokens as sql_tokens
from mergeplan.planner.parsing.sql.misreading import tokens_differ
from mergeplan.planner.parsing.sql.tokens import CLOSE, QUERY_BEGINS, SourceText, Tokens
from mergeplan.planner.semantics.spark.spark_sql import CALLS, SPARK, generate_in_place

BLOCKS = ("MODEL", "AUDIT")
ROUNDS = 3  # after which the output must be stable
_JINJA = re.compile(r"\{\{|\{%|\bJINJA_\w+", re.IGNORECASE)
_OFF = re.compile(r"[(,]\s*formatting\s+['\"]?false\b", re.IGNORECASE)
_ON = re.compile(r"[(,]\s*formatting\s+['\"]?true\b", re.IGNORECASE)
_MODEL = re.compile(r"\s*MODEL\b", re.IGNORECASE)


@dataclass(frozen=True)
class Style:
    """The layout of SQL: `format` in config.yaml."""

    normalize: bool = False
    pad: int = 2
    indent: int = 2
    normalize_functions: Literal["upper", "lower"] | bool | None = None
    leading_comma: bool = False
    max_text_width: int = 80
    append_newline: bool = True
    no_rewrite_casts: bool = False
    models: bool = True  # False where `model_defaults` has `formatting: false`


@dataclass(frozen=True)
class Formatted:
    """The text of a file after formatting, and the reason if it was left unchanged."""

    text: str
    left: str = ""


class _Left(Exception):  # no error: a reason to leave a file alone
    pass


def format_file(path: str, text: str, dialect: str, style: Style) -> Formatted:
    """Return a file of models/ or audits/ in its layout; raise ProjectError if its SQL cannot be read."""
    if _JINJA.search(text):
        return Formatted(text, "it holds Jinja")
    plain = COMMENT.sub(" ", text)
    if _OFF.search(plain):
        return Formatted(text, "it has `formatting false`")
    if not style.models and _MODEL.match(plain) and not _ON.search(plain):
        return Formatted(text, "`model_defaults` has `formatting: false`")
    try:
        previous, current = text, _format_once(path, text, dialect, style)
        for _ in range(ROUNDS):
            if previous == current:
                return Formatted(current)
            previous, current = current, _format_once(path, current, dialect, style)
    except _Left as reason:
        return Formatted(text, str(reason))
    return Formatted(text, "its formatting is not stable")


def format_tree(tree: exp.Expr, dialect: str) -> str:
    """Return a tree laid out in its own dialect, without comments."""
    return generate_in_place(_create_generator(dialect, {"comments": False}, rewrite=False), tree)


def _format_once(path: str, text: str, dialect: str, style: Style) -> str:
    source = sql_tokens.create_source(path, text, dialect, functions=None)
    parts = []
    for region, tokens in _split_regions(source):
        region_source = SourceText(path, region, source.dialect, functions=None)
        if not tokens:
            parts.append(region.strip())
        elif tokens[0].text.upper() in BLOCKS and len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN:
            parts.append(
                header_text(region_source, sql_tokens.tokenize(region_source), style.indent, style.max_text_width)
            )
        elif tokens[0].text.upper() in QUERY_BEGINS:
            parts.append(
                _query_text(region_source, _mask_macros(region_source), style, StatementTokens(source, tokens))
            )
        else:
            parts.append(region.strip())
    whole = _join_statements(parts)
    if Counter(comment_texts(whole)) != Counter(comment_texts(text)):
        raise _Left("a comment would be lost")
    return whole + ("\n" if style.append_newline else "")


def _join_statements(parts: list[str]) -> str:
    statements = [part for part in parts if part]
    if len(statements) > 1 and not COMMENT.sub("", statements[-1]).strip():
        return ";\n\n".join(statements[:-1]) + f";\n\n{statements[-1]}"
    only_block = (
        len(statements) == 1 and statements[0].lstrip().endswith(")") and re.match(r"\s*(MODEL|AUDIT)\b", statements[0])
    )
    return ";\n\n".join(statements) + (";" if only_block else "")


def _split_regions(source: SourceText) -> Iterable[tuple[str, Tokens]]:
    tokens, start, first = sql_tokens.tokenize(source), 0, 0
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            yield source.text[start : token.start], tokens[first:index]
            start, first = token.end + 1, index + 1
    yield source.text[start:], tokens[first:]


def _query_text(
    source: SourceText, masked_text: tuple[str, list[tuple[str, str]]], style: Style, whole: StatementTokens
) -> str:
    text, macros = masked_text
    masked_source = SourceText(source.path, text, source.dialect, functions=None)
    try:
        tree = sql_tokens.parse_tokens(masked_source, sql_tokens.tokenize(masked_source))
    except ProjectError:
        if macros:
            raise _Left("it has a macro where SQL allows no expression") from None
        sql_tokens.parse_tokens(whole.source, whole.tokens)  # the same, with its place in the file
        raise
    text = restore_line_comments(_generate_sql(tree, source.dialect, style), text)
    second_tree = _read_again(text, source)
    if (
        second_tree is None
        or _tree_text(second_tree, style) != _tree_text(tree, style)
        or _output_comments(second_tree) != _output_comments(tree)
    ):
        raise _Left("its query would be parsed differently")
    if source.dialect == "spark" and tokens_differ(
        sql_tokens.tokenize(masked_source), sql_tokens.tokenize(SourceText(source.path, text, source.dialect))
    ):
        raise _Left("its tokens would differ")
    return _restore_macros(text, macros)


def _generate_sql(tree: exp.Expr, dialect: str, style: Style) -> str:
    options = {
        "normalize": style.normalize,
        "pad": style.pad,
        "indent": style.indent,
        "normalize_functions": style.normalize_functions,
        "leading_comma": style.leading_comma,
        "max_text_width": style.max_text_width,
    }
    try:
        return generate_in_place(_create_generator(dialect, options, rewrite=not style.no_rewrite_casts), tree)
    except (SqlglotError, RecursionError):
        raise _Left("its query cannot be written back") from None


def _create_generator(dialect: str, options: Mapping[str, Any], *, rewrite: bool) -> Generator:
    """Return the dialect's generator, which preserves QUALIFY and may write `x::INT` for `CAST(x AS INT)`."""
    sql_dialect = Dialect.get_or_raise(dialect)
    generator = sql_dialect.generator(pretty=True, **options)
    loose = not sql_dialect.parser().STRICT_CAST  # `CAST` is then another node than `DATE '2026-01-01'`

    def anonymous(_: Generator, expression: exp.Anonymous) -> str:
        return generator.func(generator.sql(expression, "this"), *expression.expressions, normalize=False)

    def cast(_: Generator, expression: exp.Cast) -> str:
        inner = expression.this
        if loose and type(expression) is exp.Cast:
            text = f" {generator.sql(inner)}" if inner.is_string else f"({generator.sql(inner)})"
            return f"{generator.sql(expression, 'to')}{text}"
        is_long = any(expression.args.get(key) for key in ("format", "action", "default"))
        if not rewrite or is_long or isinstance(inner, (exp.Binary, exp.Unary, exp.Interval, exp.Connector)):
            return generator.cast_sql(expression)
        return f"{generator.sql(expression, 'this')}::{generator.sql(expression, 'to')}"

    def try_cast(_: Generator, expression: exp.TryCast) -> str:  # what some dialects parse every CAST to
        return known_try(generator, expression) if expression.args.get("safe") else cast(_, expression)

    known_try = generator._dispatch[exp.TryCast]
    # By the table of this one generator, and not in a class of our own: that could not inherit from a compiled one.
    transforms: dict[type[exp.Expr], Callable[..., str]]
    transforms = {
        exp.Anonymous: anonymous,
        exp.Cast: cast,
        exp.TryCast: try_cast,
        exp.Select: type(generator).select_sql,
    }
    generator._dispatch = {**generator._dispatch, **transforms, **(CALLS if dialect in SPARK else {})}
    return generator


def _read_again(text: str, source: SourceText) -> exp.Expr | None:
    try:
        new_source = SourceText(source.path, text, source.dialect, functions=None)
        return sql_tokens.parse_tokens(new_source, sql_tokens.tokenize(new_source))
    except ProjectError:
        return None


def _tree_text(tree: exp.Expr, style: Style) -> str:
    bare = tree.copy()
    for node in bare.walk():
        node.comments = None
        if style.normalize and isinstance(node, exp.Identifier) and not node.quoted:
            node.set("this", node.name.lower())
    return repr(bare)


def _output_comments(tree: exp.Expr) -> list[tuple[str, list[str]]]:
    outputs = tree.selects if isinstance(tree, exp.Query) else []
    return [(output.alias_or_name.lower(), [text.strip() for text in output.comments or ()]) for output in outputs]


def _mask_macros(source: SourceText) -> tuple[str, list[tuple[str, str]]]:
    tokens = sql_tokens.tokenize(source)
    placeholders: list[tuple[str, str]] = []
    out, at, index = "", 0, 0
    while index < len(tokens):
        end = _macro_end(tokens, index)
        if end is None:
            index += 1
            continue
        start = index
        while start > 0 and _is_adjacent(tokens[start - 1], tokens[start]) and _is_word(tokens[start - 1]):
            start -= 1  # prefix_@name is one name
        first, last = tokens[start], tokens[end]
        macro = source.text[first.start : last.end + 1]
        word = f"mp{len(placeholders)}x".ljust(len(macro.splitlines()[0]), "x")
        if COMMENT.search(macro) and comment_texts(macro):
            raise _Left("it has a comment inside a macro")
        if first.start < at or word in source.text:
            raise _Left("its macros are too close to each other")
        out += source.text[at : first.start] + word
        placeholders.append((word, macro))
        at, index = last.end + 1, end + 1
    return out + source.text[at:], placeholders


def _macro_end(tokens: Tokens, index: int) -> int | None:
    """Return the last token of `@name`, `@NAME(...)` or `@{name}`, or None; raise _Left if it is never closed."""
    token = tokens[index]
    if token.token_type is not TokenType.PARAMETER and token.text != "@":
        return None
    if index + 1 >= len(tokens) or not _is_adjacent(token, tokens[index + 1]):
        return None
    end: int | None = index + 1
    if tokens[index + 1].token_type is TokenType.L_BRACE:
        end = sql_tokens.closing(tokens, index + 1)
    while end is not None and end + 1 < len(tokens) and _is_adjacent(tokens[end], tokens[end + 1]):
        following = tokens[end + 1]
        if following.token_type is TokenType.L_PAREN:
            end = sql_tokens.closing(tokens, end + 1)
        elif _is_word(following) and tokens[end].token_type in (*CLOSE, TokenType.VAR):
            end += 1
        else:
            break
    if end is None:
        raise _Left("it has a macro that is never closed")
    return end


def _is_adjacent(left: Token, right: Token) -> bool:
    return left.end + 1 == right.start


def _is_word(token: Token) -> bool:
    return bool(re.fullmatch(r"\w+", token.text)) and token.token_type is not TokenType.STRING


def _restore_macros(text: str, macros: list[tuple[str, str]]) -> str:
    at = -1
    for word, _ in macros:
        positions = [match.start() for match in re.finditer(rf"\b{word}\b", text)]
        if len(positions) != 1 or positions[0] < at or re.search(r"\bAS\s+$", text[: positions[0]], re.IGNORECASE):
            raise _Left("it has a macro where SQL allows no expression")
        at = positions[0]
    for word, macro in macros:
        text = re.sub(rf"\b{word}\b", lambda _, macro=macro: macro, text)  # type: ignore[misc]
    return text
