"""Differences between a model's texts: of its file, or of the query that runs."""

import difflib

import sqlglot

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change, ChangeKind


def source_diff(old: Model | None, new: Model | None) -> str:
    """Return the unified diff of a model's file; of a file of dbt that is the same, that of the compiled query."""
    pair = (old, new)
    if not any(model and model.written.dbt_text for model in pair):
        texts = [model.source if model else "" for model in pair]
    elif all(model is None or model.written.dbt_text for model in pair):
        texts = [model.written.dbt_text if model else "" for model in pair]
    else:
        texts = []  # one of them was stored before its file was
    if not texts or (texts[0] == texts[1] and new and new.written.dbt_text):
        return _diff_lines(_clause_lines(old), _clause_lines(new), new or old)
    # without the blank lines around it, which are no edit
    old_lines, new_lines = (text.strip().splitlines() for text in texts)
    return _diff_lines(old_lines, new_lines, new or old)


def query_diff(change: Change) -> str:
    """Return the unified diff of a model's rendered queries, by clause; '' if the model is not edited."""
    if change.change is ChangeKind.INDIRECT:
        return ""
    old, new = (snapshot.model if snapshot else None for snapshot in (change.old, change.new))
    return _diff_lines(_clause_lines(old), _clause_lines(new), new or old)


def _diff_lines(before: list[str], after: list[str], model: Model | None) -> str:
    path = model.path if model else ""
    return "\n".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="", n=3))


def _clause_lines(model: Model | None) -> list[str]:
    if model is None or not model.sql:
        return []
    # pretty, so that a diff by lines is one by clauses
    return sqlglot.parse_one(model.sql, dialect="spark").sql(dialect="spark", pretty=True).splitlines()
