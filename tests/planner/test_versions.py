"""Versions of what is released under two names."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from mergeplan.planner.versions import first_version, pyspark_version


def test_the_client_has_a_version_where_spark_is_not_installed() -> None:
    assert first_version(["no-such-distribution", "click"]) == version("click")
    assert pyspark_version() == version("pyspark")


def test_what_is_not_installed_has_none() -> None:
    with pytest.raises(PackageNotFoundError, match="a or b"):
        first_version(["a", "b"])
