"""Versions of mergeplan and of pyspark, each of which is released under two names: with Spark and as a client."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

MERGEPLAN = ("mergeplan", "mergeplan-client")
PYSPARK = ("pyspark", "pyspark-client")


def mergeplan_version() -> str:
    return first_version(MERGEPLAN)


def pyspark_version() -> str:
    return first_version(PYSPARK)


def first_version(names: Sequence[str]) -> str:
    """Return the version of the first of these distributions that is installed; raise PackageNotFoundError for none."""
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    raise PackageNotFoundError(" or ".join(names))
