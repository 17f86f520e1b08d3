"""What `@...` means in SQL: dates, variables, and the names that an audit brings along.

A macro is recognised among the tokens, never inside a string or a comment. Variables are replaced by their values
before the SQL is parsed. Dates and an audit's names become one identifier, `@start_ds`, that any dialect reads and
writes unchanged; `render.py` fills them in when the dates are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from planner.errors import ProjectError
from planner.intervals import NAMED, Interval
from planner.reading.sqltext import Source, Tokens, closing, did_you_mean, parsed, split, tokenize

Scalar = str | int | float | bool | date | None

SUFFIXES = ("dt", "dtntz", "date", "ds", "ts", "tstz", "epoch", "millis", "hour")
DATES = frozenset(f"{prefix}_{suffix}" for prefix in ("start", "end", "execution") for suffix in SUFFIXES)
LATER = frozenset(
    """and array at_time_zone case coalesce column_type date_add date_spine date_sub deduplicate def each eval filter
    generate_surrogate_key haversine_distance if not or physical_location pivot
    reduce resolve_template safe_add safe_div safe_sub sql star this_env
    model_kind_name model_name runtime_stage schemas views physical_table this_model union blueprint_var
    env_var""".split()
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Scope:
    """What `@name` may stand for: variables (in lower case), the gateway; `any_name` keeps unknown names for later.

    An audit's parameters are known only where it is called, so its query is read with `any_name`.
    """

    variables: Mapping[str, Scalar] = field(default_factory=dict)
    gateway: str = ""
    any_name: bool = False


def expand(source: Source, tokens: Tokens, scope: Scope) -> list[Token]:
    """The tokens with variables as values and each date macro as one name; ProjectError at an unknown macro."""
    out: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if not _is_macro(tokens, index) or following is None:
            _no_jinja(source, token, following)
            out.append(token)
            index += 1
            continue
        called = index + 2 < len(tokens) and tokens[index + 2].token_type is TokenType.L_PAREN
        if called and following.text.lower() in ("var", "gateway"):
            end = closing(tokens, index + 2)
            if end is None:
                raise source.error(token, f"`@{following.text}(` is never closed.")
            out += _call(source, tokens[index : end + 1], scope)
            index = end + 1
        else:
            out += _name(source, token, following, scope, called)
            index += 2
    return out


def expand_block(source: Source, tokens: Tokens, scope: Scope) -> list[Token]:
    """The tokens of a MODEL or AUDIT block: as `expand`, and `@daily` and its like stay as they are."""
    expanded = expand(source, tokens, replace(scope, any_name=True))
    for token in expanded:
        macro = token.token_type is TokenType.VAR and token.text.startswith("@")
        if macro and token.text not in NAMED and token.text[1:] not in DATES:
            raise _unknown(source, token, token.text[1:], scope)
    return expanded


def check_places(tree: exp.Expr, source: Source, tokens: Tokens) -> None:
    """ProjectError for a macro that stands where no value can be, and for `@@x` and `${x}`, which are not macros."""
    for node in tree.find_all(exp.Identifier, exp.Parameter, exp.SessionParameter):
        if isinstance(node, exp.Identifier):
            value = isinstance(node.parent, exp.Column) and len(node.parent.parts) == 1
            if not node.name.startswith("@") or node.quoted or value or node.name == "@this_model":
                continue
        text = node.name if isinstance(node, exp.Identifier) else node.sql()
        at = next((token for token in tokens if token.text == node.name), tokens[0])
        raise source.error(at, f"`{text}` cannot stand here: a macro is a value.")


@lru_cache(maxsize=4096)
def spark_tree(sql: str) -> exp.Expr:
    """Spark SQL of ours, with `@start_ds` and its like as plain names, as a tree; copy it before you change it."""
    source = Source("", sql, "spark")
    tokens = tokenize(source)
    return parsed(source, expand(source, tokens, Scope(any_name=True)))


def dates(interval: Interval | None, execution: datetime) -> dict[str, exp.Expr]:
    """Date macro -> Spark literal; an end is the last microsecond inside; no interval means the first day of 1970."""
    stretch = interval or Interval(_EPOCH, _EPOCH + timedelta(days=1))
    moments = {"start": stretch.start, "end": stretch.end - timedelta(microseconds=1), "execution": execution}
    return {
        f"{prefix}_{suffix}": literal
        for prefix, moment in moments.items()
        for suffix, literal in _literals(moment.astimezone(UTC)).items()
    }


def _literals(at: datetime) -> dict[str, exp.Expr]:
    text, day = at.replace(tzinfo=None).isoformat(sep=" "), at.date().isoformat()
    millis = (at - _EPOCH) // timedelta(milliseconds=1)
    return {
        "dt": exp.cast(exp.Literal.string(f"{text}+00:00"), "timestamptz"),
        "dtntz": exp.cast(exp.Literal.string(text), "timestampntz"),
        "date": exp.cast(exp.Literal.string(day), "date"),
        "ds": exp.Literal.string(day),
        "ts": exp.Literal.string(text),
        "tstz": exp.Literal.string(f"{text}+00:00"),
        "epoch": exp.Literal.number(millis // 1000),
        "millis": exp.Literal.number(millis),
        "hour": exp.Literal.number(at.hour),
    }


def _is_macro(tokens: Tokens, index: int) -> bool:
    """True for `@name` and `@{`: an `@` that touches what follows and no second `@` before or after it."""
    if tokens[index].text != "@" or index + 1 >= len(tokens):
        return False
    following = tokens[index + 1]
    doubled = index > 0 and tokens[index - 1].text == "@" and tokens[index - 1].end + 1 == tokens[index].start
    touches = following.start == tokens[index].end + 1
    named = following.text == "{" or (
        _NAME.fullmatch(following.text) is not None and following.token_type is not TokenType.IDENTIFIER
    )
    return touches and named and not doubled


def _no_jinja(source: Source, token: Token, following: Token | None) -> None:
    opens = token.token_type in (TokenType.BLOCK_START,) or (
        token.text == "{"
        and following is not None
        and following.text in ("{", "%")
        and following.start == token.end + 1
    )
    if opens or re.fullmatch(r"JINJA_(QUERY_BEGIN|STATEMENT_BEGIN|END)", token.text, re.IGNORECASE):
        raise source.error(token, "Jinja in SQL is not supported yet.", "Write `@name` macros instead.")


def _name(source: Source, at: Token, name: Token, scope: Scope, called: bool) -> list[Token]:
    key = name.text.lower()
    key = key.replace("latest_", "execution_", 1) if key.startswith("latest_") else key  # SQLMesh's older spelling
    if name.text == "{" or (called and key in LATER):
        shown = "@{...}" if name.text == "{" else f"@{name.text}"
        raise source.error(at, f"The macro `{shown}` is not supported yet.")
    if key in DATES:
        return [_token(TokenType.VAR, f"@{key}", at, name)]
    if key == "gateway":
        return _value(scope.gateway, at, name)
    if key in scope.variables:
        return _value(scope.variables[key], at, name)
    if scope.any_name and not called:
        return [_token(TokenType.VAR, f"@{key}", at, name)]
    if key in LATER:
        raise source.error(at, f"The macro `@{name.text}` is not supported yet.")
    error = _unknown(source, at, name.text, scope)
    if called:
        error.hint = f"{error.hint} Macros of the project's own are not supported yet.".strip()
    raise error


def _unknown(source: Source, at: Token, name: str, scope: Scope) -> ProjectError:
    known = {f"@{each}" for each in (*DATES, *scope.variables, "var", "gateway")}
    hint = did_you_mean(f"@{name}", known, most=0)
    return source.error(at, f"There is no macro or variable `@{name}`.", hint)


def _call(source: Source, tokens: Tokens, scope: Scope) -> list[Token]:
    """The value of `@VAR('name', default)` or `@GATEWAY()`; as in SQLMesh, NULL without variable and default."""
    at, arguments = tokens[0], split(tokens[3:-1])
    if tokens[1].text.lower() == "gateway":
        return _value(scope.gateway, at, tokens[-1])
    if not 1 <= len(arguments) <= 2 or len(arguments[0]) != 1 or arguments[0][0].token_type is not TokenType.STRING:
        raise source.error(at, "`@VAR` takes the variable's name in quotes and, if you like, a default.")
    name = arguments[0][0].text.lower()
    if name in scope.variables:
        return _value(scope.variables[name], at, tokens[-1])
    return expand(source, arguments[1], scope) if len(arguments) == 2 else _value(None, at, tokens[-1])


def _value(value: Scalar, at: Token, last: Token) -> list[Token]:
    """A value as literal tokens that stand where the macro stood."""
    if value is None:
        return [_token(TokenType.NULL, "NULL", at, last)]
    if isinstance(value, bool):
        return [_token(TokenType.TRUE if value else TokenType.FALSE, str(value).upper(), at, last)]
    if not isinstance(value, int | float):
        return [_token(TokenType.STRING, str(value), at, last)]
    number = [_token(TokenType.NUMBER, repr(abs(value)), at, last)]
    if value >= 0:
        return number
    brackets = _token(TokenType.L_PAREN, "(", at, last), _token(TokenType.R_PAREN, ")", at, last)
    return [brackets[0], _token(TokenType.DASH, "-", at, last), *number, brackets[1]]


def _token(kind: TokenType, text: str, first: Token, last: Token) -> Token:
    return Token(kind, text, first.line, last.col, first.start, last.end, list(last.comments))
