"""Functions that only Databricks has, in Spark's spelling: `iff` is `if` in a project of dbt-databricks."""

from __future__ import annotations

import re

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices

WORDS = {"iff": "if", "getdate": "current_timestamp", "charindex": "locate", "timediff": "timestampdiff"}
_NAMED = re.compile(rf"\b(?:{'|'.join(WORDS)})\s*\(", re.IGNORECASE)


def spark_words(text: str) -> str:
    """Return a query with Spark's name of each function of Databricks; return an unreadable query unchanged."""
    if not _NAMED.search(text):
        return text
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    renamed = []
    for previous, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        is_call = token.token_type is TokenType.VAR and following.token_type is TokenType.L_PAREN
        if is_call and token.text.lower() in WORDS and (previous is None or previous.token_type is not TokenType.DOT):
            renamed.append(Splice(token.start, token.end + 1, WORDS[token.text.lower()]))
    return apply_splices(text, renamed)
