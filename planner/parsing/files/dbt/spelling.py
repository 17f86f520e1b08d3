"""Words of a dbt project that the parser does not read as its Spark does, in the spelling that it reads."""

import re
from itertools import pairwise

from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices
from mergeplan.planner.parsing.sql.databricks_words import WORDS, find_words

# Neither word can begin a clause where one of these follows.
_AFTER = r"\)|,|=|<|>|!|\|\||(?:in|as|is|like|between|and|or|then|else|end)\b"
_COLUMN = re.compile(rf"\b(?:from|values)\s*(?:{_AFTER})", re.IGNORECASE)
_NEXT = re.compile(_AFTER, re.IGNORECASE)
_NAMED = re.compile(rf"\b(?:{'|'.join(WORDS)})\s*\(", re.IGNORECASE)


def quote_words(text: str) -> str:
    """Return a query with back-ticks around columns named `from` and `values`; return an unreadable one unchanged."""
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


def spark_words(text: str) -> str:
    """Return a query with Spark's name of each function of Databricks; return an unreadable query unchanged."""
    if not _NAMED.search(text):
        return text
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    return apply_splices(text, [Splice(token.start, token.end + 1, name) for token, name in find_words(tokens)])
