"""Functions that only Databricks has, in Spark's spelling: `iff` is `if` in a project of dbt-databricks."""

import re

from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices
from mergeplan.planner.parsing.sql.databricks_words import WORDS, find_words

_NAMED = re.compile(rf"\b(?:{'|'.join(WORDS)})\s*\(", re.IGNORECASE)


def spark_words(text: str) -> str:
    """Return a query with Spark's name of each function of Databricks; return an unreadable query unchanged."""
    if not _NAMED.search(text):
        return text
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    return apply_splices(text, [Splice(token.start, token.end + 1, name) for token, name in find_words(tokens)])
