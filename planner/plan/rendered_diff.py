"""What changed in the query that runs, whatever the files say."""

from __future__ import annotations

import difflib

import sqlglot

from planner.model.model import Model
from planner.plan.change import Change, ChangeKind


def rendered_diff(change: Change) -> str:
    """Unified diff of a model's queries with macros and variables filled in, each clause on its own lines; '' where the
    model is not edited."""
    if change.change is ChangeKind.INDIRECT:
        return ""
    before, after = (_lines(each.model) if each else [] for each in (change.old, change.new))
    path = (change.new or change.old).model.path if (change.new or change.old) else ""  # type: ignore[union-attr]
    return "\n".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="", n=3))


def _lines(model: Model) -> list[str]:
    if not model.sql:
        return []
    return sqlglot.parse_one(model.sql, dialect="spark").sql(dialect="spark", pretty=True).splitlines()
