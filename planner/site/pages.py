"""The pages of a catalog as HTML, in a folder or one file: templates over it. They load and send nothing elsewhere."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from mergeplan.planner.catalog.catalog import Catalog, CatalogModel
from mergeplan.planner.errors import RequestError
from mergeplan.planner.site.calendar_strip import draw_strip
from mergeplan.planner.site.filters import page_filters, page_name
from mergeplan.planner.site.html_templates import open_templates
from mergeplan.planner.site.neighbourhood import draw_neighbourhood

TEMPLATES = Path(__file__).parent / "templates"
MARK = '<meta name="generator" content="mergeplan">'
_PAGE = re.compile(r"[a-z0-9_][a-z0-9_.-]*\.html")


@dataclass(frozen=True)
class Page:
    id: str
    html: Markup


@dataclass(frozen=True)
class Site:
    """The pages of a catalog; as a `single` file a page is an article with an id."""

    catalog: Catalog
    single: bool = False

    def index(self) -> str:
        """Render the list of all models with the search; of a single file, all of it."""
        if not self.single:
            return self._render_html(
                "index.html", **self._list_values(""), link=lambda name: f"models/{_page_address(name)}"
            )
        pages = [Page(page_name(name), self._render_article(name)) for name in self.catalog.models]
        if self.catalog.unused_columns:
            pages.append(Page("unused-columns", Markup(self._render_html("unused_list.html", **self._anchor_links))))  # noqa: S704
        values = {**self._list_values(""), **self._anchor_links, "pages": pages}
        return self._render_html("single.html", **values)

    def model(self, name: str) -> str:
        return self._render_html("model.html", **self._model_values(name), **self._page_links)

    def unused(self) -> str:
        """Render the page of columns that nothing needs, beside the index."""
        link = {
            "link": lambda name: f"models/{_page_address(name)}",
            "home": "index.html",
            "search_link": _search_link(""),
        }
        return self._render_html("unused.html", **link)

    def _render_article(self, name: str) -> Markup:
        return Markup(self._render_html("one_model.html", **self._model_values(name), **self._anchor_links))  # noqa: S704

    def _render_html(self, template: str, **values: object) -> str:
        return _page_templates().get_template(template).render(catalog=self.catalog, **values)

    def _list_values(self, folder: str) -> Mapping[str, Any]:
        models = sorted(self.catalog.models.values(), key=lambda model: model.name)
        schemas: dict[str, list[CatalogModel]] = {}
        for model in models:
            schemas.setdefault(model.name.rpartition(".")[0], []).append(model)
        listed = [model for group in schemas.values() for model in group]
        return {"schemas": list(schemas.items()), "words": search_words(listed), "unused_link": "unused.html"}

    def _model_values(self, name: str) -> Mapping[str, Any]:
        model = self.catalog.models[name]
        return {
            "model": model,
            "drawn": draw_neighbourhood(self.catalog.models, name),
            "strip": draw_strip(model, self.catalog.made_at),
        }

    @property
    def _page_links(self) -> Mapping[str, Any]:
        return {"link": _page_address, "home": "../index.html", "search_link": _search_link("../index.html")}

    @property
    def _anchor_links(self) -> Mapping[str, Any]:
        link = {"link": lambda name: f"#{quote(page_name(name))}", "home": "#index", "search_link": _search_link("")}
        return {**link, "unused_link": "#unused-columns"}


def _page_address(name: str) -> str:
    return quote(f"{page_name(name)}.html")


def _search_link(index: str) -> Any:
    return lambda words: f"{index}#q={quote(words)}"


@cache
def security_policy() -> str:
    """Forbid a browser everything but our own style and script, by their hashes."""
    texts = read_style(), _read_template("search.js")
    hashes = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    style, script = (f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"


@cache
def read_style() -> str:
    return read_colours() + _read_template("style.css")


@cache
def read_colours() -> str:
    """Return the variables that every page takes its colours from."""
    return _read_template("primer.css")


@cache
def _read_template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _page_templates() -> Environment:
    environment = open_templates([TEMPLATES], page_filters())
    texts = {"style": Markup(read_style()), "script": Markup(_read_template("search.js"))}  # noqa: S704 - files of ours
    environment.globals.update({**texts, "policy": security_policy()})
    return environment


def search_words(models: Iterable[CatalogModel]) -> Mapping[str, object]:
    """Every column's name and description once, and for each model the numbers of its own."""
    numbers: dict[tuple[str, str], int] = {}
    rows = [
        [numbers.setdefault((column.name, column.description.lower()), len(numbers)) for column in model.columns or ()]
        for model in models
    ]
    return {"columns": [[name, text] if text else [name] for name, text in numbers], "models": rows}


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
