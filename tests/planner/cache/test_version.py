"""What decides how a project's files are read asks for entries of its own when it changes: code, and lists of names."""

from __future__ import annotations

from mergeplan.planner.cache.version import PLANNER, READERS


def test_every_list_that_files_are_judged_by_is_in_the_version() -> None:
    named = {path.name for pattern in READERS for path in PLANNER.glob(pattern)}

    assert {"spark_registry.ini", "known_packages.ini", "spark_defaults.conf", "spark_registry.py"} <= named
