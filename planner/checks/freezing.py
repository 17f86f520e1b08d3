"""The text of a query as a unit test runs it: at a given time, or for the rows of one CTE."""

from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.tokens import CLOSE, OPEN, SourceText, tokenize
from mergeplan.planner.semantics.keywords import is_keyword

_NOW = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentDatetime, exp.CurrentTime)
_DATES = ("CURRENT_DATE", "CURDATE")
_TIMES = ("CURRENT_TIMESTAMP", "NOW")
_BARE = ("CURRENT_DATE", "CURRENT_TIMESTAMP")  # Spark allows to call these without brackets


def clock_calls(tree: exp.Expr) -> list[exp.Expr]:
    return [node for node in tree.walk() if is_clock_call(node)]


def is_clock_call(node: exp.Expr) -> bool:
    return isinstance(node, _NOW) or (is_keyword(node) and node.name.upper() in _BARE)


def frozen_text(text: str) -> str:
    """Return the text with `@execution_date` and `@execution_dt` for clock functions; '' if tokens do not tell them."""
    tokens = tokenize(SourceText("", text, "spark"))
    out, last, count, plain_count = "", 0, 0, 0
    for index, token in enumerate(tokens):
        word = token.text.upper()
        quoted = token.token_type in (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
        if quoted or word not in (*_DATES, *_TIMES):
            continue
        called = [next_token.token_type for next_token in tokens[index + 1 : index + 3]] == [
            TokenType.L_PAREN,
            TokenType.R_PAREN,
        ]
        if not called and word not in _BARE:
            continue
        end = tokens[index + 2].end if called else token.end
        plain_count += word == "NOW"  # a plain call to the parser
        out += text[last : token.start] + ("@execution_date" if word in _DATES else "@execution_dt")
        last, count = end + 1, count + 1
    parsed_count = len(clock_calls(spark_tree(text)))
    return out + text[last:] if parsed_count in (count, count - plain_count) else ""


def ctes_of(sql: str) -> str:
    """Return a query's WITH clause; '' if it has none, or if the tokens do not show where it ends."""
    tokens, depth = tokenize(SourceText("", sql, "spark")), 0
    if tokens[0].token_type is not TokenType.WITH:
        return ""
    for token, next_token in pairwise(tokens):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            if next_token.token_type is TokenType.SELECT:
                return sql[: next_token.start].rstrip()
            if next_token.token_type not in (TokenType.COMMA, TokenType.ALIAS):
                return ""
    return ""
