"""A catalog of some files, made without Spark."""

from __future__ import annotations

from tests.planner.catalog.conftest import catalog

__all__ = ["catalog"]
