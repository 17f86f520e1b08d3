"""Whether this service isolates the code of projects, in the words that its log and /readyz use."""

from __future__ import annotations

from bot.settings import Settings
from planner.isolation.mode import NONE
from planner.isolation.probe import cannot


def isolation_said(settings: Settings) -> str:
    """`required`, or what is missing: nothing is isolated, or it cannot be and projects with Python are held."""
    if settings.isolation == NONE:
        return "none: the code of projects may do what this user may (MERGEPLAN_ISOLATION=none)"
    if why := cannot():
        return f"not possible here ({why}): plans of projects with Python code are refused"
    return settings.isolation
