"""What a project publishes of its prod follows from its catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mergeplan.bot.readers.impact import TableChange, find_changes, find_unaffected, meet_readers
from mergeplan.bot.readers.publication import TableReader, publish_catalog
from mergeplan.planner.contract.catalog import CatalogView
from mergeplan.planner.contract.plan import PlanView

ORDERS = "spark_catalog.core.orders"


def ends(*columns: str) -> list[dict[str, str | None]]:
    pairs = (column.rpartition(".") for column in columns)
    return [{"model": table, "column": name or None} for table, _, name in pairs]


def model(name: str, columns: dict[str, list[str]] | None, rows: list[str], **more: Any) -> dict[str, Any]:
    made = (
        None
        if columns is None
        else [{"name": column, "made_from": ends(*sources)} for column, sources in columns.items()]
    )
    return {"name": name, "kind": "FULL", "columns": made, "row_deciders": ends(*rows), **more}


def catalog(*models: dict[str, Any], **more: Any) -> CatalogView:
    view = {"project": "finance", "environment": "prod", "made_at": "", "models": models, **more}
    return CatalogView.model_validate(view)


def plan(**change: Any) -> PlanView:
    facts = {"name": "core.orders", "kind": "FULL", "change": "direct", "recomputed": True, **change}
    return PlanView.model_validate({"id": "x", "environment": "pr_1", "models": [facts]})


REVENUE = model(
    "finance.revenue",
    {"eur": ["core.orders.amount"]},
    ["core.orders.status", "core.orders."],
    parents=["core.orders"],
    owner="fin",
)


def test_a_model_reads_the_columns_that_its_values_and_its_rows_come_from() -> None:
    reads = publish_catalog(catalog(REVENUE)).reads
    assert reads == {ORDERS: (TableReader("finance.revenue", ("amount", "status"), "fin"),)}


def test_a_query_that_is_not_followed_may_read_any_column() -> None:
    python = model("finance.py", {"x": []}, [], parents=["core.orders"], unfollowed="it is Python code")
    unknown = model("finance.star", None, [], parents=["core.orders"])
    untraced = model("finance.odd", {"x": []}, [], parents=["core.orders"])
    (readers,) = publish_catalog(catalog(python, unknown, untraced)).reads.values()
    assert {reader.columns for reader in readers} == {None}


def test_a_count_of_rows_reads_no_column() -> None:
    count = model("finance.n", {"n": []}, ["core.orders."], parents=["core.orders"])
    assert publish_catalog(catalog(count)).reads[ORDERS][0].columns == ()


def test_a_declared_external_table_is_no_model_of_the_project() -> None:
    columns = [{"name": "amount"}, {"name": "status"}, {"name": "more"}]
    external = {"name": "core.orders", "kind": "EXTERNAL", "columns": columns}
    assert publish_catalog(catalog(external, REVENUE)) == publish_catalog(catalog(REVENUE))


def test_who_reads_every_declared_column_may_read_others_too() -> None:
    """`SELECT *` of a table with a column that came after its declaration."""
    external = {"name": "core.orders", "kind": "EXTERNAL", "columns": [{"name": "amount"}, {"name": "status"}]}
    assert publish_catalog(catalog(external, REVENUE)).reads[ORDERS][0].columns is None


def test_an_exposure_reads_what_its_models_are_made_from() -> None:
    total = model("finance.total", {"eur": ["finance.revenue.eur"]}, ["finance.revenue."], parents=["finance.revenue"])
    board = {"name": "board", "owner": "ceo", "models": ["finance.total"]}
    readers = publish_catalog(catalog(REVENUE, total, exposures=[board])).reads[ORDERS]
    assert readers[1] == TableReader("board", ("amount", "status"), "ceo", is_exposure=True)


def test_names_are_compared_with_their_catalog() -> None:
    there = {"view": "core.orders", "version": "1"}
    core = model("core.orders", {}, [], deployed=there)
    reads = publish_catalog(catalog(REVENUE, default_catalog="lake")).reads
    assert publish_catalog(catalog(core, default_catalog="lake")).views == {"core.orders": "lake.core.orders"}
    assert tuple(reads) == ("lake.core.orders",)
    assert publish_catalog(catalog(core)).views == {"core.orders": ORDERS}


def test_only_what_readers_notice_is_a_change() -> None:
    views = {"core.orders": ORDERS}
    removed = TableChange("core.orders", ORDERS, removed=("amount",))
    assert find_changes(plan(category="breaking", columns={"removed": ["Amount"]}), views) == (removed,)
    assert find_changes(plan(change="removed", category=None), views)[0].goes
    assert find_changes(plan(category="breaking"), views)[0].every  # its columns are not known
    for quiet in ({"category": "non_breaking", "columns": {"added": ["x"]}}, {"category": "metadata"}):
        assert find_changes(plan(**quiet), views) == ()
    assert find_changes(plan(category="breaking"), {"core.other": ORDERS}) == ()


def test_a_reader_of_any_column_meets_each_change_and_another_only_its_own() -> None:
    readers = {ORDERS: (TableReader("any", None), TableReader("price", ("price",)), TableReader("rows", ()))}

    def names(change: TableChange) -> list[tuple[str, bool]]:
        return [(reading.reader, reading.takes) for reading, _ in meet_readers([change], readers)]

    assert names(TableChange("m", ORDERS, altered=("amount",))) == [("any", False)]
    assert names(TableChange("m", ORDERS, removed=("price",))) == [("any", True), ("price", True)]
    assert names(TableChange("m", ORDERS, every=True)) == [("any", False), ("price", False), ("rows", False)]
    assert all(takes for _, takes in names(TableChange("m", ORDERS, goes=True, every=True)))


def test_a_model_is_kept_only_if_no_changed_table_may_give_it_other_rows() -> None:
    price, rows = TableReader("price", ("price",)), TableReader("rows", ())
    readers = {ORDERS: (price, rows, TableReader("any", None), replace(price, name="Board", is_exposure=True)),
               "lake.core.items": (rows,)}  # fmt: skip
    change = TableChange("core.orders", ORDERS, altered=("amount",))

    assert [reading.reader for reading in find_unaffected([change], readers)] == ["price", "rows"]
    assert find_unaffected([replace(change, grows=True)], readers) == ()
    every = TableChange("core.items", "lake.core.items", every=True)
    assert [reading.reader for reading in find_unaffected([change, every], readers)] == ["price"]


def test_a_view_downstream_is_a_change_though_it_computes_nothing() -> None:
    view = {"change": "indirect", "category": "indirect_breaking", "recomputed": False}
    assert find_changes(plan(**view), {"core.orders": ORDERS})[0].every
    assert find_changes(plan(**view | {"category": "indirect_non_breaking"}), {"core.orders": ORDERS}) == ()
