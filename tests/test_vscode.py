"""The extension in a real editor: code-server, driven by a browser. Prod is in the state alone; a test takes Spark.

It needs `make vscode`, chromium (or CHROMIUM) and code-server: CODE_SERVER is its command, such as
`node …/out/node/entry.js`. MERGEPLAN_PICTURES=docs/images draws the pictures of the guide anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from mergeplan.planner.session.settings import SessionSettings
from tests.planner.lsp.conftest import MODELS, TEST, promote, write_files
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import FILES

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parent.parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PATIENCE = 150.0  # seconds, on a machine that does other things
SPARK = 240.0  # seconds that a unit test may take
ENVIRONMENT = '.statusbar-item[id$=".mergeplan.mergeplan.environment"]'
MERGEPLAN = str(Path(sys.executable).parent / "mergeplan")
PICTURES = os.environ.get("MERGEPLAN_PICTURES")
SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.editor.useModal": "off",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "security.workspace.trust.untrustedFiles": "open",
    "telemetry.telemetryLevel": "off",
}


@pytest.fixture(name="address")
def _address(tmp_path: Path) -> Iterator[str]:
    """The address of an editor with the extension, whose folder is the shop."""
    command = shlex.split(os.environ.get("CODE_SERVER", "")) or [shutil.which("code-server") or ""]
    packages = sorted((ROOT / "editors" / "vscode" / "build").glob("*.vsix"))
    if not command[0] or not packages:
        pytest.skip("no code-server, or no extension: make vscode")
    shop = tmp_path / "shop"
    write_files(shop, {**FILES, **MODELS, "tests/test_totals.yaml": TEST})
    promote(SessionSettings(shop.resolve(), open_engine=refuse_engine))
    settings = {**SETTINGS, "mergeplan.command": [MERGEPLAN]}
    write_files(tmp_path / "data", {"User/settings.json": json.dumps(settings)})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    folders = ["--user-data-dir", str(tmp_path / "data"), "--extensions-dir", str(tmp_path / "extensions")]
    environment = {**os.environ, "MERGEPLAN_HOME": str(shop / ".mergeplan"), "MERGEPLAN_ISOLATION": "none"}
    environment |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    install = [*command, *folders, "--install-extension", str(packages[-1])]
    subprocess.run(install, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    serve = [
        *command,
        *folders,
        "--auth",
        "none",
        "--bind-addr",
        place,
        "--disable-telemetry",
        "--disable-update-check",
    ]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(serve, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            wait_for(lambda: "HTTP server listening" in (tmp_path / "log").read_text())
            yield f"http://{place}/?folder={shop}"
        finally:
            server.terminate()


@pytest.fixture(name="page")
def _page(address: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 850})
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(address)
        page.wait_for_selector(".monaco-workbench")
        yield page
        page.screenshot(path=tmp_path / f"{request.node.name}.png")
        browser.close()


def wait_for(done: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


def open_file(page: Page, name: str) -> None:
    """Open a file by its name."""
    page.keyboard.press("Control+p")
    page.locator(".quick-input-widget input").fill(name)
    page.locator(".quick-input-list .monaco-list-row", has_text=name).first.click()
    page.locator(".tab.active", has_text=name).wait_for()


def run_command(page: Page, title: str) -> None:
    """Run a command by its title."""
    page.keyboard.press("F1")
    page.locator(".quick-input-widget input").fill(f">{title}")
    page.locator(".quick-input-list .monaco-list-row", has_text=title).first.click()


def wait_for_lens(page: Page, pattern: str) -> None:
    """Wait for a lens, and for the status bar to say the same."""
    lens, bar = (
        page.locator(".codelens-decoration a"),
        page.locator('.statusbar-item[id$=".mergeplan.mergeplan.plan"]'),
    )
    lens.filter(has_text=re.compile(pattern)).first.wait_for()
    bar.filter(has_text=re.compile(pattern)).first.wait_for()


def trust(page: Page) -> None:
    """Trust the folder that is open."""
    page.locator(".statusbar-item", has_text="Restricted Mode").click()
    page.get_by_role("button", name="Trust", exact=True).first.click()
    page.locator(".statusbar-item", has_text="Restricted Mode").wait_for(state="detached")


def type_column(page: Page, words: str) -> None:
    """Type words behind the first SELECT."""
    page.locator(".view-line", has_text="SELECT").first.click()
    page.keyboard.press("Home")
    page.keyboard.press("Control+ArrowRight")
    page.keyboard.type(words)


def wait_for_panel(page: Page, *words: str) -> None:
    """Wait for a panel that has all of these words."""

    def shows() -> bool:
        texts = [frame.locator("body").inner_text() for frame in page.frames[1:]]
        return any(all(word in text for word in words) for text in texts)

    wait_for(shows)


def take_picture(page: Page, name: str) -> None:
    """Keep a picture for the documentation, where MERGEPLAN_PICTURES names a folder."""
    if PICTURES:
        page.mouse.move(200, 600)
        page.wait_for_timeout(1500)
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_the_plan_of_an_edit_stands_above_it_and_its_query_beside_it(page: Page) -> None:
    open_file(page, "latest.sql")
    wait_for_lens(page, "Trust the folder")
    trust(page)
    open_file(page, "latest.sql")
    wait_for_lens(page, "As in prod")

    type_column(page, " 1 AS tax,")
    wait_for_lens(page, "Non-breaking: Only adds .tax.")
    page.locator(".codelens-decoration a", has_text="Render").first.click()
    page.locator(".tab", has_text="shop.latest (rendered).sql").wait_for()
    page.locator(".editor-group-container").nth(1).locator(".view-line", has_text="AS tax").wait_for()
    take_picture(page, "editor-lens")

    run_command(page, "mergeplan: Show Lineage of This File")
    wait_for_panel(page, "shop.latest", "shop.orders", "shop.daily")
    take_picture(page, "editor-lineage")


def test_the_plan_of_saved_files_is_a_panel_for_the_environment_that_is_picked(page: Page) -> None:
    trust(page)
    open_file(page, "latest.sql")
    wait_for_lens(page, "As in prod")
    type_column(page, " 1 AS tax,")
    page.keyboard.press("Control+s")
    page.locator(ENVIRONMENT, has_text="prod").click()
    page.locator(".quick-input-list .monaco-list-row", has_text="Another environment").click()
    page.locator(".quick-input-widget input").fill("dev")
    page.keyboard.press("Enter")
    page.locator(ENVIRONMENT, has_text="dev").wait_for()

    run_command(page, "mergeplan: Show Plan")
    wait_for_panel(page, "environment dev", "shop.latest", "tax")
    plan = next(frame for frame in page.frames[1:] if "environment dev" in frame.locator("body").inner_text())
    assert plan.locator("script").count() == plan.locator("form >> visible=true").count() == 0
    plan.locator("h2", has_text="Models").evaluate("heading => heading.scrollIntoView()")
    take_picture(page, "editor-plan")


def test_a_data_diff_is_of_the_environment_that_is_picked(page: Page) -> None:
    trust(page)
    open_file(page, "latest.sql")
    wait_for_lens(page, "As in prod")
    page.locator(".codelens-decoration a", has_text="As in prod").first.click()
    page.get_by_role("button", name="Data Diff").click()
    page.locator(".quick-input-list .monaco-list-row", has_text="Another environment").click()
    page.locator(".quick-input-widget input").fill("dev")
    page.keyboard.press("Enter")

    page.locator(ENVIRONMENT, has_text="dev").wait_for()
    message = page.locator(".notification-list-item-message", has_text="mergeplan:").filter(has_text="dev")
    message.filter(has_text="environment").first.wait_for()  # nobody has built it


def test_a_column_is_renamed_in_all_files_that_name_it(page: Page, address: str) -> None:
    trust(page)
    open_file(page, "orders.sql")
    wait_for_lens(page, "As in prod")
    page.locator(".view-line", has_text="AS twice").locator("span", has_text=re.compile("twice")).last.click()
    page.keyboard.press("F2")
    page.locator(".rename-box input").fill("doubled")
    page.keyboard.press("Enter")
    wait_for_lens(page, "Breaking: |Undecided")
    page.locator(".view-line", has_text="AS doubled").wait_for()

    open_file(page, "latest.sql")
    page.locator(".view-line", has_text="doubled AS twice").wait_for()
    wait_for_lens(page, "Equivalent")
    take_picture(page, "editor-rename")


def test_a_unit_test_is_run_from_the_testing_view(page: Page) -> None:
    trust(page)
    open_file(page, "test_totals.yaml")
    page.locator(".codelens-decoration a", has_text="Run test").first.wait_for()
    run_command(page, "Testing: Focus on Test Explorer View")
    row = page.locator(".test-explorer .monaco-list-row", has_text="test_totals.yaml")
    row.wait_for()
    run_command(page, "Test: Run All Tests")
    page.locator(".test-explorer .monaco-list-row .codicon-testing-passed-icon").first.wait_for(timeout=SPARK * 1000)
    take_picture(page, "editor-tests")
