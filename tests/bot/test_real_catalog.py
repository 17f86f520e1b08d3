"""The catalog of the service's pages, written by the planner itself after it has promoted with Spark."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest

from mergeplan.bot.pages.links import links_of
from tests.bot.conftest import SHOP, Bench

pytestmark = pytest.mark.prove
PROJECT = {
    "config.yaml": "gateways: {local: {connection: {type: spark}}}\nmodel_defaults: {dialect: spark}\n",
    "models/orders.sql": "MODEL (name shop.orders, kind FULL, owner ann);\nSELECT 1 AS id, 2 AS price\n",
    "models/totals.sql": "MODEL (name shop.totals, kind VIEW);\nSELECT sum(price) AS total FROM shop.orders\n",
}


def test_the_pages_show_what_the_planner_wrote_of_prod(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(PROJECT, planner_command=(), patience=900.0, public_url="https://bot.example")
    key = links_of(bench.settings).sign_access(SHOP, 0, 2**31)
    sent = {"Cookie": f"mergeplan_pages={key}"}
    page = httpx.get(f"{bench.url}/catalog/{SHOP}/models/shop.orders", headers=sent, timeout=60).text

    assert f'href="/catalog/{SHOP}/models/shop.totals"' in page
    text = " ".join(re.sub(r"<[^>]*>", "", page).split())  # its SQL has colours
    assert "ann" in text and "SELECT 1 AS id, 2 AS price" in text
    assert bench.context.inbox.catalogs.mark(SHOP).mark.endswith(":1")
