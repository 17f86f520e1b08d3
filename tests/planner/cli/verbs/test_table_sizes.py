"""The sizes of prod's tables, which the janitor measures and the catalog shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.planner.cli.conftest import TODAY, CommandLine


def read_tables(mergeplan: CommandLine) -> dict[str, dict[str, Any]]:
    target = mergeplan.root / "catalog.json"
    assert mergeplan("docs", "--format", "json", "--output", str(target)).code == 0
    models = json.loads(target.read_text())["models"]
    return {model["name"]: model["deployed"] for model in models if model["deployed"]}


def test_the_janitor_measures_the_tables_that_were_written_since(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(shown="", apart="")
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0
    assert {table["bytes"] for table in read_tables(mergeplan).values()} == {None}

    assert mergeplan("janitor").code == 0
    first = read_tables(mergeplan)
    assert all(first[name]["bytes"] > 100 for name in ("shop.daily", "shop.total"))
    files = sum(path.stat().st_size for path in mergeplan.root.rglob("shop__total__*/**/*.parquet"))
    assert first["shop.total"]["bytes"] == files or not files  # the warehouse may lie elsewhere

    assert mergeplan("plan", "--restate-model", "shop.total", "--auto-apply", "--execution-time", TODAY).code == 0
    assert mergeplan("janitor").code == 0
    second = read_tables(mergeplan)
    moved = {name for name, table in second.items() if table["measured_at"] != first[name]["measured_at"]}
    assert moved == {"shop.total"}
