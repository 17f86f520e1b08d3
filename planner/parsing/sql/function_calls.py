"""Calls of functions in SQL: found among the tokens, which are what Spark reads, and judged by Spark's registry.

The parser renames functions and knows others than Spark. So every name before a bracket counts as a call, unless it is
a word of Spark's grammar, or names columns: `WITH t(a, b) AS`, `FROM range(3) AS t(id)`.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.parsing.sql.spark_registry import (
    CLOSED,
    JAVA,
    OPTIONS,
    function_refusal,
    option_refusal,
    spark_name,
)
from mergeplan.planner.semantics.reading.token_runs import CLOSING, OPENING, split_at_commas

# Words that may precede a bracket without a call, including types.
WORDS = frozenset(
    """all and any as between by case character dec distinct div else except for from geography geometry group having
    ilike in insert intersect interval is join lateral like limit minus not nulls numeric of offset on options or over
    partition pivot properties qualify repeatable return select set sets table tablesample tblproperties then union
    unpivot using values varchar when where with zone""".split()
)
_SYMBOL = re.compile(r"[!-/:-@\[-^{-~]+")  # of ASCII, but `_` and the back-tick
# Pieces of every name in CLOSED, JAVA and OPTIONS: a text without any of them calls none of these.
_STEMS = (
    "xpath", "avro", "protobuf", "xml", "csv", "reflect", "java_method", "worker_logs", "secret", "read_",
    "cloud_files", "remote_query", "http_request", "table_changes",
)  # fmt: skip


@dataclass(frozen=True)
class FunctionCall:
    """A name before a bracket, in lower case and with its schema, and the tokens of its arguments."""

    name: str
    at: Token
    arguments: tuple[tuple[Token, ...], ...] = ()


@dataclass(frozen=True)
class RefusedCall:
    """A call that is not allowed: its place, the reason, and a hint."""

    at: Token
    message: str
    hint: str = ""


def find_refused_call(
    tokens: Sequence[Token], tree: exp.Expr | None, allowed_names: Collection[str]
) -> RefusedCall | None:
    """Return the first forbidden call in a statement of Spark SQL; `allowed_names` are the operator's additions.

    `tree` is the parser's tree of the tokens. It shows which names precede a list of columns.
    """
    aliases = tree.find_all(exp.TableAlias) if tree is not None else ()
    columns = Counter(alias.name.lower() for alias in aliases if alias.args.get("columns"))
    for call in function_calls(tokens):
        if call.name in columns and function_refusal(call.name, allowed_names) and call.name not in CLOSED | JAVA:
            columns -= Counter((call.name,))
        elif refused := _check_call(call, allowed_names):
            return refused
    for node in tree.find_all(exp.Anonymous) if tree is not None else ():
        # A function of the catalog that is called as a word of the grammar.
        name = node.name.lower()
        if name in WORDS - {"table"} and (reason := function_refusal(name, allowed_names)):
            at = next((token for token in tokens if token.text.lower() == name), tokens[0])
            return RefusedCall(at, *reason)
    return None


def find_closed_call(sql: str, allowed_names: Collection[str] = ()) -> RefusedCall | None:
    """Return the first call of a closed function in any text that Spark is about to run, including mergeplan's own."""
    lower = sql.lower()
    if not any(stem in lower for stem in _STEMS):
        return None
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(sql)
    except SqlglotError:
        return None  # Spark reports the error itself
    for call in function_calls(tokens):
        if spark_name(call.name) in CLOSED | JAVA | OPTIONS.keys() and (rejection := _check_call(call, allowed_names)):
            return rejection
    return None


def function_calls(tokens: Sequence[Token]) -> Iterator[FunctionCall]:
    """Yield every name before a bracket that may be a function's."""
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.HINT:
            yield from _calls_in_hint(token)
        elif index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.L_PAREN and _is_call(tokens, index):
            yield FunctionCall(_full_name(tokens, index), token, _split_arguments(tokens, index + 2))


def _is_call(tokens: Sequence[Token], index: int) -> bool:
    token, previous = tokens[index], tokens[index - 1] if index else None
    word = token.text.lower()
    if token.token_type is TokenType.IDENTIFIER:
        return True
    if token.token_type is TokenType.STRING:
        return word in CLOSED | JAVA  # double quotes may enclose names
    if token.token_type is TokenType.NUMBER or _SYMBOL.fullmatch(token.text):
        return False
    if word.startswith("@") or (previous is not None and previous.token_type is TokenType.PARAMETER):
        return False  # a macro
    if previous is not None and previous.token_type is TokenType.DOT:
        return True
    if word == "name" and previous is not None and previous.text.upper() == "BY":  # `UNION BY NAME (SELECT ...)`
        return False
    return word not in WORDS and not (" " in word and token.token_type is not TokenType.VAR)


def _full_name(tokens: Sequence[Token], index: int) -> str:
    parts = [tokens[index].text.lower()]
    while index >= 2 and tokens[index - 1].token_type is TokenType.DOT:
        index -= 2
        parts.insert(0, tokens[index].text.lower())
    return ".".join(parts)


def _split_arguments(tokens: Sequence[Token], start: int) -> tuple[tuple[Token, ...], ...]:
    return tuple(tuple(argument) for argument in split_at_commas(tokens[start:]) if argument)


def _calls_in_hint(hint: Token) -> Iterator[FunctionCall]:
    """Yield the calls within the brackets of `/*+ REPARTITION(f(x)) */`, which is one token; all are at the hint."""
    inner = Dialect.get_or_raise("spark").tokenize(hint.text.removeprefix("/*+").removesuffix("*/"))
    depth = 0
    for index, token in enumerate(inner):
        opens = index + 1 < len(inner) and inner[index + 1].token_type is TokenType.L_PAREN
        if depth and opens and _is_call(inner, index):
            yield FunctionCall(_full_name(inner, index), hint, _split_arguments(inner, index + 2))
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)


def _check_call(call: FunctionCall, allowed_names: Collection[str]) -> RefusedCall | None:
    if reason := function_refusal(call.name, allowed_names):
        return RefusedCall(call.at, *reason)
    bare_name = spark_name(call.name)
    if bare_name not in OPTIONS or bare_name in allowed_names:
        return None
    if any(token.token_type is TokenType.FARROW for argument in call.arguments for token in argument[1:2]):
        return RefusedCall(call.at, option_refusal(bare_name, None))
    for argument in call.arguments[OPTIONS[bare_name] :]:
        for option in _option_names(argument):
            if message := option_refusal(bare_name, option):
                return RefusedCall(call.at, message)
    return None


def _option_names(argument: Sequence[Token]) -> list[str | None]:
    """Return the keys of `map('name', 'value', ...)`; None for one that is no plain text and for any other argument."""
    words = [token.text.lower() for token in argument[:2]]
    if words != ["map", "("] or argument[-1].token_type is not TokenType.R_PAREN:
        return [None]
    parts = _split_arguments(argument, 2)
    if sum(len(part) for part in parts) + max(len(parts) - 1, 0) != len(argument) - 3:
        return [None]  # something follows the map
    plain = [part[0].text if len(part) == 1 and part[0].token_type is TokenType.STRING else None for part in parts[::2]]
    return list(plain)
