"""The pages in a real browser: from a search to an applied plan, with and without JavaScript, and what axe finds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.npm import fetch_package
from tests.planner.shop import write_shop

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1800)]  # a browser, and a Spark of its own
BROWSER = shutil.which(os.environ.get("CHROMIUM", "chromium"))
MINUTES = 600_000.0  # milliseconds
EDIT = "MODEL (name shop.total, kind FULL);\nSELECT sum(price) + 1 AS total FROM shop.daily"
NARROW = "MODEL (name shop.narrow);\nSELECT id FROM shop.wide"
DAILY = (  # one batch, however long ago the shop began
    "MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day), audits (not_null(columns := (id))));\n"
    "SELECT id, day, price FROM shop.items WHERE day BETWEEN @start_date AND @end_date"
)
AXE = "axe.run(document, {resultTypes: ['violations']})"
PAGES = (
    "/", "/?q=price", "/models/shop.daily", "/models/shop.total", "/unused", "/lineage", "/lineage?focus=shop.daily",
    "/lineage?fold=all", "/lineage?focus=shop.none", "/environments", "/environments/prod", "/environments/dev",
    "/plans", "/plans/new", "/checks", "/checks/lint", "/diff", "/login", "/nothing",
)  # fmt: skip


@pytest.fixture(name="chromium", scope="module")
def _chromium() -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("there is no chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the pages of a shop whose prod was promoted twice."""
    root = tmp_path_factory.mktemp("shop")
    for number in (8, 7):
        write_shop(root, daily=DAILY, apart=f"MODEL (name shop.apart, kind FULL);\nSELECT {number} AS seven")
        with Session(SessionSettings(root)) as session:
            session.plan("prod").apply()
    write_shop(root, daily=DAILY, total=EDIT)
    with serve_pages(root) as address:
        yield address


@contextmanager
def serve_pages(root: Path) -> Iterator[str]:
    """The address of the pages of a project whose files were read."""
    command = [sys.executable, "-m", "mergeplan.planner.cli.main", "ui", "--port=0", f"--project={root}"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip().rstrip("/")
        while httpx.get(f"{address}/api/v1/meta", timeout=600).status_code != 200:
            pass  # the project is read for the first time: a browser complains of the status of that page
        yield address
        process.terminate()


def open_page(chromium: Browser, *, javascript: bool = True) -> tuple[Page, list[str]]:
    """A page, and what the browser complains of on it."""
    page, complaints = chromium.new_context(java_script_enabled=javascript).new_page(), list[str]()
    page.set_default_timeout(MINUTES)
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page, complaints


def wait_for_job(page: Page, *, javascript: bool) -> str:
    """The state of the job of the page once it has ended; the page follows it by itself."""
    running = "#live[data-events]"
    if javascript:
        page.wait_for_selector(running, state="detached")
    while not javascript and page.locator(running).count():
        page.wait_for_event("load")  # the page is loaded again by itself
    return page.locator(".head .step").first.inner_text()


@pytest.mark.parametrize("javascript", [True, False])
def test_a_search_leads_to_an_applied_plan(server: str, chromium: Browser, javascript: bool) -> None:
    environment = "dev" if javascript else "plain"
    page, complaints = open_page(chromium, javascript=javascript)
    page.goto(server)
    page.get_by_label("Search models").fill("total")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("link", name="shop.total").click()
    page.get_by_role("main").get_by_role("link", name="shop.daily").first.click()
    page.get_by_role("navigation").get_by_role("link", name="Plans").click()
    page.get_by_role("link", name="New plan").click()
    page.get_by_label("Environment").fill(environment)
    page.get_by_role("button", name="Plan", exact=True).click()
    assert wait_for_job(page, javascript=javascript) == "done"
    assert "+SELECT sum(price) + 1 AS total" in page.locator(".diff").first.inner_text().replace("+  ", "+")
    page.get_by_label(f"Apply this plan to {environment}").check()
    page.get_by_role("button", name=f"Apply to {environment}").click()
    assert wait_for_job(page, javascript=javascript) == "done"
    page.goto(f"{server}/environments/{environment}")

    assert page.get_by_role("row").count() == 2
    assert complaints == []


def test_a_drawing_is_moved_and_zoomed_by_keys_and_buttons(server: str, chromium: Browser) -> None:
    page, complaints = open_page(chromium)
    page.goto(f"{server}/lineage?focus=shop.daily")
    box = page.locator(".lineage.across svg")
    frame, views = page.locator(".lineage.across"), [box.get_attribute("viewBox")]
    for act in (lambda: frame.press("ArrowRight"), lambda: frame.press("+"), lambda: frame.get_by_text("Fit").click()):
        act()
        views.append(box.get_attribute("viewBox"))
    page.locator(".lineage.across a", has_text="shop.total").click()

    assert len(set(views)) == 4
    assert page.url.endswith("/lineage?focus=shop.total")
    assert complaints == []


def test_the_number_of_unused_columns_follows_the_list_of_models(chromium: Browser, tmp_path: Path) -> None:
    write_shop(tmp_path, wide="MODEL (name shop.wide);\nSELECT id, price FROM shop.daily", narrow=NARROW)
    with serve_pages(tmp_path) as address:
        page, complaints = open_page(chromium)
        page.goto(address)
        page.get_by_role("link", name="1 unused column").click()

        assert page.get_by_role("row").count() == 2
        assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious_and_no_page_is_wider_than_the_screen(
    server: str, chromium: Browser, tmp_path: Path, scheme: str, width: int
) -> None:
    script = (fetch_package("axe-core", tmp_path) / "axe.min.js").read_text(encoding="utf-8")
    dark = "dark" if scheme == "dark" else "light"
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=dark, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{server}/plans")
    jobs = page.locator('td a[href^="/plans/"], td a[href^="/jobs/"]').all()
    findings = []
    for address in (*PAGES, *(str(job.get_attribute("href")) for job in jobs[:6])):
        page.goto(f"{server}{address}")
        page.evaluate(script)
        violations = page.evaluate(AXE)["violations"]
        findings += [(address, one["id"]) for one in violations if one["impact"] in ("serious", "critical")]
        findings += [(address, "wide")] * page.evaluate("document.documentElement.scrollWidth > innerWidth")
    context.close()

    assert findings == []
