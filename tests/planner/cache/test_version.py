"""What decides how a project's files are read asks for entries of its own when it changes: code, and lists of names."""

from __future__ import annotations

from pathlib import Path

from mergeplan.planner.cache.version import PLANNER, list_readers


def test_every_list_that_files_are_judged_by_is_in_the_version() -> None:
    named = {Path(path).name for path in list_readers()}

    assert {"spark_registry.ini", "known_packages.ini", "spark_defaults.conf", "spark_registry.py"} <= named


def test_code_that_reads_files_is_in_the_version_and_pages_are_not() -> None:
    files = {Path(path).relative_to(PLANNER).as_posix() for path in list_readers()}

    assert {"serial.py", "cache/store.py", "parsing/files/schema.py", "snapshot/snapshot.py"} <= files
    assert not [file for file in files if file.startswith(("ui/", "plan/", "cli/")) and file.endswith(".py")]
