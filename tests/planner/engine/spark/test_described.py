"""What the catalog says of a table, read from the lines that Spark prints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mergeplan.planner.engine.spark.described import describe_table
from mergeplan.planner.engine.spark.sessions import Sessions

LINES = [("id", "int", None), ("row", "int", None), ("", "", ""), ("# Detailed Table Information", "", "")]
LINES += [("Provider", "delta", ""), ("Location", "/t", "")]


def sessions(lines: list[tuple[Any, ...]]) -> Sessions:
    """A Spark that describes a table by these lines."""
    return cast(Sessions, SimpleNamespace(run=lambda _sql: SimpleNamespace(collect=lambda: lines)))


@pytest.mark.parametrize("heading", ["# Row Filter", "# Column Masks", "Row Filter", "# Column Mask", "# row filters"])
@pytest.mark.parametrize("at", [2, len(LINES)])
def test_a_table_with_a_row_filter_or_a_column_mask_is_known_as_such(heading: str, at: int) -> None:
    plain = describe_table(sessions(LINES), "s.t")
    described = describe_table(sessions([*LINES[:at], ("", "", ""), (heading, "main.f", ""), *LINES[at:]]), "s.t")

    assert plain and described
    assert (plain.has_policy, described.has_policy, plain.format) == (False, True, "delta")


@pytest.mark.parametrize("kind", ["MATERIALIZED_VIEW", "STREAMING_TABLE"])
def test_files_that_databricks_fills_itself_are_no_tables_that_could_be_adopted(kind: str) -> None:
    described = describe_table(sessions([*LINES, ("Type", kind, "")]), "s.t")

    assert described and described.files == kind.lower()
