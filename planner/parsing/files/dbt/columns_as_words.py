"""Columns named like the keywords `from` and `values`: Spark reads them, but the parser only in back-ticks."""

import re
from itertools import pairwise

from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices

# Neither word can begin a clause where one of these follows.
_AFTER = r"\)|,|=|<|>|!|\|\||(?:in|as|is|like|between|and|or|then|else|end)\b"
_COLUMN = re.compile(rf"\b(?:from|values)\s*(?:{_AFTER})", re.IGNORECASE)
_NEXT = re.compile(_AFTER, re.IGNORECASE)


def quote_words(text: str) -> str:
    """Return a query with back-ticks around such columns; return an unreadable query unchanged."""
    if not _COLUMN.search(text):
        return text
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    words = ((token, text[token.start : token.end + 1], following) for token, following in pairwise(tokens))
    quoted = [
        Splice(token.start, token.end + 1, f"`{word}`")
        for token, word, following in words
        if word.lower() in ("from", "values") and _NEXT.match(text, following.start)
    ]
    return apply_splices(text, quoted)
