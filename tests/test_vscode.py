"""The extension in a real editor: code-server, driven by a browser. No Spark: prod is in the state alone.

It needs `make vscode`, chromium (or CHROMIUM) and code-server: CODE_SERVER is its command, such as
`node …/out/node/entry.js`.
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
PATIENCE = 60.0  # seconds, on a machine that does other things
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
    settings = {**SETTINGS, "mergeplan.command": [str(Path(sys.executable).parent / "mergeplan")]}
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


def test_the_plan_of_an_edit_stands_above_it_and_its_query_beside_it(page: Page) -> None:
    open_file(page, "latest.sql")
    wait_for_lens(page, "Trust the folder")
    page.locator(".statusbar-item", has_text="Restricted Mode").click()
    page.get_by_role("button", name="Trust", exact=True).first.click()
    page.locator(".statusbar-item", has_text="Restricted Mode").wait_for(state="detached")
    open_file(page, "latest.sql")
    wait_for_lens(page, "As in prod")

    page.locator(".view-line", has_text="SELECT").first.click()
    page.keyboard.press("Home")
    page.keyboard.press("Control+ArrowRight")
    page.keyboard.type(" 1 AS tax,")
    wait_for_lens(page, "Non-breaking: Only adds .tax.")
    page.locator(".codelens-decoration a", has_text="Render").first.click()
    page.locator(".tab", has_text="shop.latest (rendered).sql").wait_for()
    page.locator(".editor-group-container").nth(1).locator(".view-line", has_text="AS tax").wait_for()

    run_command(page, "mergeplan: Show Lineage of This File")
    wait_for(lambda: any("shop.orders" in frame.locator("body").inner_text() for frame in page.frames[1:]))
