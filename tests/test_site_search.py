"""The search of the documentation's site: what a user wants to do leads to a guide, not to a reference."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parent.parent
FIRST = {
    "rollback": "guides/rollback/",
    "how do I roll back": "guides/rollback/",
    "back up the state": "guides/backup/",
    "change a category": "guides/change-category/",
    "databricks": "guides/deploy/",
    "dbt": "guides/dbt/",
    "restate": "guides/restatement/",
    "upgrade": "guides/upgrading/",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, with the index that a browser searches."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    return folder


def test_a_search_for_a_task_finds_its_guide_first(site: Path) -> None:
    node = shutil.which("node")
    if not node:
        pytest.skip("the site's search runs in Node")
    script = [node, str(Path(__file__).with_name("site_search.js")), str(site), *FIRST]
    pages = subprocess.run(script, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()

    assert {query: line.split()[0] for query, line in zip(FIRST, pages, strict=True)} == FIRST
