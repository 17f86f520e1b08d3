"""Columns that are called as words of SQL, `from` and `values`: Spark reads them, and the parser only in back-ticks."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.kinds import SPARK

# Neither word can begin a clause where one of these follows.
_AFTER = r"\)|,|=|<|>|!|\|\||(?:in|as|is|like|between|and|or|then|else|end)\b"
_COLUMN = re.compile(rf"\b(?:from|values)\s*(?:{_AFTER})", re.IGNORECASE)
_NEXT = re.compile(_AFTER, re.IGNORECASE)


def quote_words(text: str) -> str:
    """A query with back-ticks around such columns; one that cannot be read stays as it is."""
    if not _COLUMN.search(text):
        return text
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    quoted, end = [], 0
    for token, after in pairwise(tokens):
        word = text[token.start : token.end + 1]
        if word.lower() in ("from", "values") and _NEXT.match(text, after.start):
            quoted += [text[end : token.start], f"`{word}`"]
            end = token.end + 1
    return "".join([*quoted, text[end:]])
