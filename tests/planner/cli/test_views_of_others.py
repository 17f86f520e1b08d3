"""What stands in the place of a model's view before mergeplan came: refused at once, or replaced on demand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.protocol import ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine

Shop = Callable[..., CommandLine]
AT = ("--execution-time", "2024-01-10")


@pytest.fixture
def total(shop: Shop) -> CommandLine:
    """A shop of one model that says 1."""
    return shop(items="", daily="", apart="", total="MODEL (name shop.total, kind FULL);\nSELECT 1L AS total")


def view_value(engine: SparkEngine, view: str) -> object:
    return engine.fetch(f"SELECT * FROM {view}").rows[0][0]


def permit(project: CommandLine) -> CommandLine:
    project.write("config.yaml", (project.root / "config.yaml").read_text() + "promotion: {replaces_views: true}\n")
    return project


@pytest.mark.parametrize("readable", [True, False])
def test_a_view_of_others_is_refused_before_anything_is_computed(
    total: CommandLine, engine: SparkEngine, *, readable: bool
) -> None:
    engine.catalog.swap_view(ViewText("shop.given", "SELECT 7L AS total"))
    engine.catalog.swap_view(ViewText("shop.total", "SELECT total FROM shop.given"))
    if not readable:
        engine.catalog.drop_view("shop.given")

    refused = total("plan", "--auto-apply", *AT)

    assert (refused.code, total.state.tables.all()) == (4, {})
    assert "`shop.total` is a view that mergeplan did not make" in refused.err
    assert "promotion: {replaces_views: true}" in refused.err


def test_a_table_is_refused_before_anything_is_computed(total: CommandLine, engine: SparkEngine) -> None:
    engine._sessions.run("CREATE SCHEMA IF NOT EXISTS shop")
    engine._sessions.run("CREATE TABLE shop.total USING parquet AS SELECT 7L AS total")

    refused = permit(total)("plan", "--auto-apply", *AT)

    assert (refused.code, total.state.tables.all(), view_value(engine, "shop.total")) == (4, {}, 7)
    assert "mergeplan adopt" in refused.err


def test_where_the_project_says_so_prod_replaces_it_and_no_other_environment(
    total: CommandLine, engine: SparkEngine
) -> None:
    for view in ("shop.total", "shop__dev.total"):
        engine.catalog.swap_view(ViewText(view, "SELECT 7L AS total"))
    permit(total)

    assert (total("plan", "dev", "--auto-apply", *AT).code, view_value(engine, "shop__dev.total")) == (4, 7)
    assert (total("plan", "--auto-apply", *AT).code, view_value(engine, "shop.total")) == (0, 1)
