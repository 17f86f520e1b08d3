"""Parses Spark SQL so that functions which are different in Spark stay different.

sqlglot rewrites some functions: `LOG10(x)` to `LOG(10, x)`, `ARRAY_SIZE` to `SIZE`, `TO_DATE(s, 'yyyy-MM-dd')` to one
without the format. Their results differ in Spark, so such a call is kept as a name and its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

_NESTED = ("ARRAY", "MAP", "STRUCT")
_HEX = re.compile(r"[0-9a-fA-F]*")
# What sqlglot raises, deliberately or by a bug: one query must not stop a project from planning.
FAILURES = (SqlglotError, RecursionError, ValueError, LookupError, TypeError, AttributeError, AssertionError)
Builder = Callable[..., exp.Expr]
# functions that sqlglot rewrites, at least for some arguments, to ones with other results
REWRITTEN = ("LOG10", "LOG2", "ARRAY_SIZE", "UNIX_DATE", "GET_JSON_OBJECT", "TO_DATE", "DATE_FORMAT")


class KeepingGenerator(SparkGenerator):
    """Keeps each WITH in its place: sqlglot moves them to the top, where two of one name would clash."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()


def _kept(name: str, build: Builder, args: list[exp.Expr], **dialect: Any) -> exp.Expr:
    """The node that sqlglot builds for a call, if it generates the same text; otherwise the call itself."""
    call = exp.Anonymous(this=name, expressions=[each.copy() for each in args])
    try:
        built = build(args, **dialect)
        return built if _text(built) == _text(call) else call
    except TypeError:
        if dialect:
            return call
        raise  # the parser calls it again with the dialect
    except FAILURES:  # a path or a format that sqlglot cannot write
        return call


def _text(tree: exp.Expr) -> str:
    return str(KeepingGenerator(dialect="spark", comments=False, unsupported_level=ErrorLevel.IGNORE).generate(tree))


class KeepingParser(SparkParser):
    """Parses Spark SQL, and keeps such calls."""

    FUNCTIONS: ClassVar[dict[str, Builder]] = {
        **SparkParser.FUNCTIONS,
        **{name: partial(_kept, name, SparkParser.FUNCTIONS[name]) for name in REWRITTEN},
    }


def trees(tokens: Sequence[Token], text: str, dialect: str = "spark") -> list[exp.Expr | None]:
    """The statements of these tokens as trees; raises sqlglot's errors."""
    if dialect != "spark":
        return Dialect.get_or_raise(dialect).parser().parse(list(tokens), text)
    return KeepingParser(dialect=Dialect.get_or_raise("spark")).parse(_readable(tokens), text)


def tree_of(sql: str) -> exp.Expr:
    """A Spark query as a tree; raises sqlglot's errors."""
    found = trees(Dialect.get_or_raise("spark").tokenize(sql), sql)
    assert found[0] is not None
    return found[0]


def _readable(tokens: Sequence[Token]) -> list[Token]:
    """The tokens in a form that sqlglot can parse: `>>>` as `>>`, `X '1F'` as one token, no `MAX RECURSION LEVEL 5`."""
    out: list[Token] = []
    types = 0  # open brackets of ARRAY<..., in which `>>>` closes three
    index = 0
    while index < len(tokens):
        token, before = tokens[index], tokens[index - 1] if index else None
        words = [each.text.upper() for each in tokens[index : index + 3]]
        if words == ["MAX", "RECURSION", "LEVEL"]:
            index += 4
            continue
        opens = token.token_type is TokenType.LT and before is not None and before.text.upper() in _NESTED
        closes = token.token_type is TokenType.GT and types > 0
        types += opens - closes
        if before and token.token_type is TokenType.STRING and _begins_hex(before) and _HEX.fullmatch(token.text):
            out[-1] = Token(TokenType.HEX_STRING, token.text, token.line, token.col, before.start, token.end)
        elif closes or not _third_of_three(out, token):
            out.append(token)
        index += 1
    return out


def _begins_hex(token: Token) -> bool:
    return token.token_type is TokenType.VAR and token.text in ("x", "X")


def _third_of_three(before: Sequence[Token], token: Token) -> bool:
    """True for the last token of `>>>`."""
    three = [*before[-2:], token]
    touch = all(one.end + 1 == other.start for one, other in pairwise(three))
    return len(three) == 3 and touch and all(each.token_type is TokenType.GT for each in three)
