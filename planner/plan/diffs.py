"""Differences between a model's texts: of its file, or of the query that runs."""

from __future__ import annotations

import difflib

import sqlglot

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change, ChangeKind


def source_diff(old: Model | None, new: Model | None) -> str:
    """Return the unified diff of a model's file; of a file of dbt that is the same, that of the compiled query."""
    if any(model and model.dbt_text for model in (old, new)):
        texts = [model.dbt_text if model else "" for model in (old, new)]
        is_of_file = texts[0] != texts[1] and (old is None or bool(texts[0]))
        before, after = [text.strip().splitlines() for text in texts] if is_of_file else map(_clause_lines, (old, new))
        return _diff_lines(before, after, new or old)
    # without the blank lines around it, which are no edit
    old_lines, new_lines = (model.source.strip().splitlines() if model else [] for model in (old, new))
    return _diff_lines(old_lines, new_lines, new or old)


def query_diff(change: Change) -> str:
    """Return the unified diff of a model's rendered queries, by clause; '' if the model is not edited.

    Macros and variables are filled in.
    """
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
