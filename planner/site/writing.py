"""Write a site into a folder, or into one file."""

import re
from collections.abc import Iterator
from pathlib import Path

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import RequestError
from mergeplan.planner.site.names import page_name
from mergeplan.planner.site.pages import Site

MARK = '<meta name="generator" content="mergeplan">'
_PAGE = re.compile(r"[a-z0-9_][a-z0-9_.-]*\.html")


def write_site(catalog: Catalog, folder: Path) -> None:
    """Write the pages into an empty folder, or over an older site, whose old pages go; else raise RequestError."""
    _check_folder(folder)
    site, pages = Site(catalog), folder / "models"
    pages.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(site.index(), encoding="utf-8")  # first: it marks the folder as ours
    written: set[str] = set()
    for name in catalog.models:
        file = f"{page_name(name)}.html"
        (pages / file).write_text(site.model(name), encoding="utf-8")
        written.add(file)
    for stale in list(_our_pages(pages)):
        if stale.name not in written:
            stale.unlink()
    (folder / "unused.html").write_text(site.unused(), encoding="utf-8")


def write_single_file(catalog: Catalog, path: Path) -> None:
    """Write the whole site as one file; RequestError where a folder stands in its place."""
    if path.is_dir():
        raise RequestError(f"`{path}` is a folder.", hint="Name a file, as in `--output catalog.html`.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Site(catalog, single=True).index(), encoding="utf-8")


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RequestError(f"`{folder}` is a file.", hint="Name a folder, or write one file with `--single-file`.")
    index = folder / "index.html"
    if any(folder.iterdir()) and not (index.is_file() and MARK in index.read_text(encoding="utf-8", errors="replace")):
        raise RequestError(
            f"The folder `{folder}` is not empty, and holds no catalog of mergeplan.",
            hint="Name another one with `--output`, or empty it.",
        )


def _our_pages(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink() and _PAGE.fullmatch(path.name):
            with path.open(encoding="utf-8", errors="replace") as file:
                if MARK in file.read(4000):
                    yield path
