"""Functions that only Databricks has, as Spark writes the same: `iff` is `if` in a project of dbt-databricks."""

from __future__ import annotations

import re

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.parsing.files.dbt.kinds import SPARK
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject

WORDS = {"iff": "if", "getdate": "current_timestamp", "charindex": "locate", "timediff": "timestampdiff"}
_NAMED = re.compile(rf"\b(?:{'|'.join(WORDS)})\s*\(", re.IGNORECASE)


def translate_project(project: DbtProject) -> DbtProject:
    """A project whose adapter is dbt-databricks, with Spark's names of functions in its texts."""
    nodes = tuple(map(_translate_node, project.nodes))
    is_same = all(map(lambda before, after: before is after, project.nodes, nodes))
    return project if is_same else project.model_copy(update={"nodes": nodes})


def _translate_node(node: DbtNode) -> DbtNode:
    texts = {name: spark_words(getattr(node, name)) for name in ("text", "later") if _NAMED.search(getattr(node, name))}
    return node.model_copy(update=texts) if texts else node


def spark_words(text: str) -> str:
    """A query with Spark's name of each function that Databricks alone has; one that cannot be read stays as it is."""
    if not _NAMED.search(text):
        return text
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    filled, end = [], 0
    for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        is_call = token.token_type is TokenType.VAR and after.token_type is TokenType.L_PAREN
        if is_call and token.text.lower() in WORDS and (before is None or before.token_type is not TokenType.DOT):
            filled += [text[end : token.start], WORDS[token.text.lower()]]
            end = token.end + 1
    return "".join([*filled, text[end:]])
