"""docs from outside: a site in a folder or as one file, a document, what it refuses, and the search in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema_rs
import pytest

from mergeplan.planner.contract.catalog import catalog_schema
from tests.planner.cli.conftest import CommandLine
from tests.planner.cli.test_start import imports_of
from tests.planner.shop import write_shop

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def shop(offline: CommandLine) -> CommandLine:
    write_shop(offline.root)
    return offline


def test_a_site_is_written_into_a_folder(shop: CommandLine) -> None:
    ran = shop("docs")

    assert (ran.code, ran.out) == (0, "5 models: open catalog/index.html\n")
    written = sorted(path.name for path in (shop.root / "catalog/models").iterdir())
    assert written == [f"shop.{name}.html" for name in ("apart", "daily", "items", "shown", "total")]
    assert sorted(path.name for path in (shop.root / "catalog").iterdir()) == ["index.html", "models", "unused.html"]


def test_written_again_the_page_of_a_model_that_is_gone_goes(shop: CommandLine) -> None:
    shop("docs", "--output", "public")
    (shop.root / "public/models/notes.html").write_text("mine")
    (shop.root / "models/apart.sql").unlink()
    ran = shop("docs", "--output", "public")

    pages = {path.name for path in (shop.root / "public/models").iterdir()}
    assert ran.code == 0
    assert (pages & {"shop.apart.html", "shop.daily.html", "notes.html"}) == {"shop.daily.html", "notes.html"}


def test_a_folder_of_something_else_is_left_alone(shop: CommandLine) -> None:
    ran = shop("docs", "--output", "models")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: The folder `models` is not empty, and holds no catalog of mergeplan.")
    assert not (shop.root / "models/index.html").exists()
    assert shop("docs", "--output", "config.yaml").err.startswith("Error: `config.yaml` is a file.")


def test_one_file_holds_every_page(shop: CommandLine) -> None:
    ran = shop("docs", "--single-file", "--output", "out/all.html")

    page = (shop.root / "out/all.html").read_text()
    assert (ran.code, ran.out) == (0, "5 models: open out/all.html\n")
    assert page.count('<article class="page"') == 5
    assert shop("docs", "--single-file", "--output", "models").err.startswith("Error: `models` is a folder.")


def test_the_document_is_as_published(shop: CommandLine) -> None:
    ran = shop("docs", "--format", "json")

    document = json.loads((shop.root / "catalog.json").read_text())
    assert (ran.code, len(document["models"]), document["revision"]) == (0, 5, 0)
    assert jsonschema_rs.validator_for(catalog_schema()).is_valid(document)


def test_dbts_files_are_written_into_a_folder(shop: CommandLine) -> None:
    ran = shop("docs", "--format", "dbt")

    manifest = json.loads((shop.root / "dbt-artifacts/manifest.json").read_text())
    assert (ran.code, ran.out) == (0, "5 models: dbt-artifacts/manifest.json, dbt-artifacts/catalog.json\n")
    assert len([uid for uid in manifest["nodes"] if not uid.startswith("test.")]) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "site"], "`--output site` would be a folder. For the form, write `--format site`."),
        (["--format", "json", "--single-file"], "`--single-file` does not go with `--format json`."),
        (["--environment", "qa"], "There is no environment `qa`."),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(arguments: list[str], message: str, shop: CommandLine) -> None:
    ran = shop("docs", *arguments)

    assert ran.code == 1
    assert message in ran.err
    assert not (shop.root / "catalog").exists()


def test_neither_spark_nor_the_bot_is_imported(shop: CommandLine) -> None:
    verbs = "import os\nfrom mergeplan.planner.cli.main import VERBS, run"
    code = f"{verbs}\nos.chdir({str(shop.root)!r})\nrun(VERBS, ['docs'])"

    assert not imports_of(code) & {"pyspark", "fastapi", "github", "mcp"}
    assert shop.opened == []


@pytest.mark.prove
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_the_search_finds_columns_and_words_in_a_browser(shop: CommandLine, tmp_path: Path) -> None:
    shop("docs", "--single-file")
    address = f"{(shop.root / 'catalog.html').as_uri()}#q=price%20DAILY"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    page = subprocess.run(
        [str(CHROMIUM), *flags, "--virtual-time-budget=3000", address], capture_output=True, text=True, check=True
    ).stdout

    rows = re.findall(
        r'<li( hidden="")?><div class="what"><a href="[^"]+"><code>(shop\.\w+)</code></a> <span class="badge', page
    )
    assert [name for is_hidden, name in rows if not is_hidden] == ["shop.daily"]
    assert '<p class="hit">price</p>' in page
    assert "1 of 5" in page
