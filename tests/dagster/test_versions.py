"""Versions that decide what is stale: another one after each write, and none without one."""

from __future__ import annotations

from mergeplan.dagster.versions import Input, provenance, table_data_version, view_version


def test_rows_have_another_version_in_another_table_partition_or_run() -> None:
    versions = {
        table_data_version(*written)
        for written in (("t", "2026-01-01", "r"), ("u", "2026-01-01", "r"), ("t", None, "r"), ("t", "2026-01-01", "s"))
    }
    assert len(versions) == 4


def test_a_view_has_another_version_when_its_query_or_what_it_reads_has() -> None:
    read = {"shop.a": Input("1", 10)}

    assert view_version("f", read) == view_version("f", dict(read))
    assert len({view_version("f", read), view_version("g", read), view_version("f", {"shop.a": Input("2", 11)})}) == 3


def test_provenance_says_what_was_read_and_which_event_says_so() -> None:
    tags = provenance("code", "data", {"shop/a": Input("1", 10), "raw/b": Input()})

    assert tags["dagster/input_data_version/shop/a"] == "1"
    assert tags["dagster/input_event_pointer/shop/a"] == "10"
    assert tags["dagster/input_event_pointer/raw/b"] == "NULL"
    assert all(len(value) <= 63 for value in tags.values())
