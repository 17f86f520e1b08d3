"""The traits of table formats: what the rest of the program relies on for every row."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.spark_tables import STORES
from mergeplan.planner.model.table_format import FILE_FORMATS, FORMATS, TABLE_FORMATS


def test_every_format_has_its_verbs() -> None:
    assert STORES.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", TABLE_FORMATS)
def test_a_format_with_a_log_was_tested_and_says_how_it_refuses_a_commit(name: str) -> None:
    form = FORMATS[name]

    assert all(release.catalog and release.artifact.startswith(release.stem) for release in form.releases)
    assert form.releases
    assert form.conflict_condition or form.conflict_message
    assert set(form.files) <= set(FILE_FORMATS)


@pytest.mark.parametrize("name", FILE_FORMATS)
def test_plain_files_need_nothing_of_spark_and_refuse_no_commit(name: str) -> None:
    form = FORMATS[name]

    assert not (form.releases or form.catalogs or form.server_limits)
    assert not form.is_conflict("DELTA_CONCURRENT_APPEND", "Found conflicting files")


@pytest.mark.parametrize(("name", "merges"), [("a-b", True), ("c", True), ("x`y", False), ("a.b", False)])
def test_delta_merges_no_name_that_its_merge_reads_as_an_expression(name: str, merges: bool) -> None:
    assert FORMATS["delta"].can_merge(("id", name)) is merges
    assert FORMATS["iceberg"].can_merge(("id", name))
    assert not FORMATS["parquet"].can_merge(("id", name))
