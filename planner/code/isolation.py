"""How the child in which a project's Python runs is isolated."""

from __future__ import annotations

from planner.isolation.mode import NO_ISOLATION, Isolation, isolation_of

__all__ = ["NO_ISOLATION", "Isolation", "isolation_of"]
