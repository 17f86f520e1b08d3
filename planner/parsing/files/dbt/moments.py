"""The time of a run in a compiled text: dbt would write it as a constant, mergeplan as an expression of SQL."""

import re

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.parsing.files.dbt.nodes import DbtNode

MARKED = re.compile("\ue004(utc|local)\\|(-?[0-9.]+)\\|([^\ue005]*)\ue005")  # as the child writes it
EDGES = "\ue004\ue005"
NOW = {"utc": "to_utc_timestamp(current_timestamp(), current_timezone())", "local": "current_timestamp()"}
TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")  # of a literal: `DATE '2026-01-01'`
FORMATS = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%d": "dd", "%H": "HH", "%I": "hh", "%M": "mm", "%S": "ss", "%f": "SSSSSS",
    "%p": "a", "%j": "DDD", "%b": "MMM", "%B": "MMMM", "%F": "yyyy-MM-dd", "%T": "HH:mm:ss",
}  # fmt: skip
_APART = re.compile(r"[\s()=<>,;+*/-]*")  # what may stand beside a number
_PART = re.compile(r"%.|[A-Za-z]+|'|[^%A-Za-z']+", re.DOTALL)
HINT = "Let SQL ask for the time, or give it as a variable."


def fill_moments(node: DbtNode, text: str) -> str:
    """Return a text that computes the time of the run in SQL; raise ProjectError if it is only a part of a constant."""
    if not MARKED.search(text):
        return text
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except SqlglotError:
        raise node.refusal("has a query that cannot be read, with the time of the run in it", HINT) from None
    filled, end = [], 0
    for previous, token in zip([None, *tokens], tokens, strict=False):
        if token.start < end:
            continue  # part of a number that is already filled in
        if year := _bare_year(text, token.start, previous):
            filled += [text[end : token.start], f"CAST({_moment_sql(node, year)} AS INT)"]
            end = year.end()
            continue
        match = MARKED.fullmatch(token.text) if token.token_type == TokenType.STRING else None
        if match is None:
            if any(edge in token.text for edge in EDGES):
                raise node.refusal("writes the time of the run into its query as a part of something else", HINT)
            continue
        is_typed = previous is not None and previous.text.upper() in TYPES and previous.token_type != TokenType.STRING
        start = previous.start if previous is not None and is_typed else token.start
        sql = _moment_sql(node, match)
        kind = previous.text.upper() if previous is not None else ""
        filled += [text[end:start], f"CAST({sql} AS {kind})" if is_typed else sql]
        end = token.end + 1
    return MARKED.sub("the time of the run", "".join([*filled, text[end:]]))  # the rest is in comments


def _bare_year(text: str, start: int, before: Token | None) -> re.Match[str] | None:
    """Return the mark of a year that begins here and is a number of type INT by itself: `WHERE year = 2026`."""
    match = MARKED.match(text, start)
    if match is None or match[3] != "%Y" or (before is not None and before.text.upper() == "INTERVAL"):
        return None
    around = text[max(start - 1, 0) : start] + text[match.end() : match.end() + 1]
    return match if _APART.fullmatch(around) else None


def _moment_sql(node: DbtNode, match: re.Match[str]) -> str:
    moment, seconds = NOW[match[1]], float(match[2])
    if seconds:
        moment = f"{moment} + INTERVAL '{seconds:.6f}' SECOND"
    pattern = "".join(_format_pattern(node, part) for part in _PART.findall(match[3]))
    return "date_format({}, '{}')".format(moment, pattern.replace("'", "\\'"))


def _format_pattern(node: DbtNode, part: str) -> str:
    if part.startswith("%"):
        if part not in FORMATS:
            raise node.refusal(f"writes the time of the run in the format `{part}`, which Spark does not have", HINT)
        return FORMATS[part]
    if part[0].isalpha():
        return f"'{part}'"
    if any(character in "'\\[]{}#" for character in part):
        raise node.refusal(f"writes the time of the run with `{part}` in its format", HINT)
    return part
