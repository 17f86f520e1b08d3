"""The catalog in the bot's pages in a real browser: what axe finds, light and dark, at a desk and on a phone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from mergeplan.bot.pages.links import links_of
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.npm import fetch_package
from tests.planner.ui.test_browser import AXE, _chromium

__all__ = ["_chromium"]
pytestmark = [pytest.mark.prove, pytest.mark.timeout(1800)]
PAGES = (
    "", "?q=orders", "models/shop.orders", "lineage", "lineage?focus=shop.orders", "unused", "environments", "plans",
    "nothing",
)  # fmt: skip
SHOTS = os.environ.get("MERGEPLAN_SHOTS", "")  # a folder for pictures, for a person who looks at them


def test_axe_finds_nothing_serious_on_the_bots_pages(
    make_bench: Callable[..., Bench], chromium: Browser, tmp_path: Path
) -> None:
    bench = make_bench(public_url="https://bot.example")
    number = bench.open(COLUMN)
    bench.idle()
    script = (fetch_package("axe-core", tmp_path) / "axe.min.js").read_text(encoding="utf-8")
    key = links_of(bench.settings).sign_access(SHOP, 0, 2**31)
    addresses = (*PAGES, f"plans/{number}", f"lineage?plan={number}")
    findings, loaded = [], 0
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            dark = "dark" if scheme == "dark" else "light"
            context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=dark, bypass_csp=True)
            context.add_cookies([{"name": "mergeplan_pages", "value": key, "url": bench.url}])
            page = context.new_page()
            page.set_default_timeout(600_000)
            for place, address in enumerate(addresses):
                page.goto(f"{bench.url}/catalog/{SHOP}/{address}")
                page.evaluate(script)
                violations = page.evaluate(AXE)["violations"]
                findings += [(address, one["id"]) for one in violations if one["impact"] in ("serious", "critical")]
                findings += [(address, "wide")] * page.evaluate("document.documentElement.scrollWidth > innerWidth")
                loaded += page.locator("nav[aria-label='Pages'] a").count() == 4
                if SHOTS:
                    page.screenshot(path=f"{SHOTS}/{place}-{scheme}-{width}.png", full_page=True)
            context.close()

    assert findings == []
    assert loaded == 4 * len(addresses)
