"""What Java may see of our environment, and what its profiles are."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.process.java import ENVIRONMENT, Profile, escape_property, profile_of
from mergeplan.planner.errors import RequestError


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
    assert escape_property("C:\\x\n é𝄞") == "C:\\\\x\\n \\u00e9\\ud834\\udd1e"


@pytest.mark.parametrize("profile", Profile)
def test_every_profile_reserves_room_for_compiled_code_and_ends_without_memory(profile: Profile) -> None:
    assert "-XX:ReservedCodeCacheSize=240m" in profile.options
    assert "-XX:+ExitOnOutOfMemoryError" in profile.options


def test_java_has_the_room_that_it_was_asked_to_reserve(engine: SparkEngine) -> None:
    jvm: Any = engine._sessions.current.spark._jvm
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()

    reserved = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())

    assert reserved >= 200 * 2**20
