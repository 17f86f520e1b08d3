"""What the site does to pages: those of the root join it, links out of docs/ lead to GitHub, and nothing is loaded.

`make docs` is strict: what is logged as a warning here fails it.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OF_THE_ROOT = {"CHANGELOG.md": "development/changelog.md", "CONTRIBUTING.md": "development/contributing.md"}
LOG = logging.getLogger("mkdocs.hooks.site")
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="?https?:|<link\b(?=[^>]*stylesheet)[^>]*href="?https?:"""
)
# The theme asks GitHub for the stars of what is marked so, at each visit.
COUNTED = re.compile(r'\s+data-md-component="?source"?(?=[\s>])')
# Of two pages that fit a search, the one that tells a user what to do comes first.
WEIGHTS = {"tutorials": 1.5, "guides": 2, "reference": 1, "explanation": 1, "development": 0.2}
LINK = re.compile(r"(?<=\]\()([^)\s:]+)(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the root's pages, with the links that they have in their new place."""
    for name, place in OF_THE_ROOT.items():
        files.append(File.generated(config, place, content=_rebase((ROOT / name).read_text("utf-8"), place, config)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to the site's own page, or to the file on GitHub."""
    folder = posixpath.dirname(page.file.src_uri)
    page.meta["search"] = {"boost": WEIGHTS.get(folder, 1)}
    return LINK.sub(lambda link: _leave(link[1], folder, config), markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """A reader's visit is nobody else's business: what a page shows comes from the site itself."""
    output = COUNTED.sub("", output)
    if loaded := LOADED.search(output):
        LOG.warning("%s loads from elsewhere: %s", page.file.src_uri, loaded[0])
    return output


def _rebase(text: str, place: str, config: MkDocsConfig) -> str:
    """A page of the root, with links as the page in that place writes them."""
    folder = posixpath.dirname(place)
    return LINK.sub(lambda link: link[1] if link[1].startswith("#") else _resolve(link[1], folder, config), text)


def _leave(target: str, folder: str, config: MkDocsConfig) -> str:
    whole = posixpath.normpath(posixpath.join("docs", folder, target))
    return target if target.startswith("#") or whole.startswith("docs/") else _resolve(whole, folder, config)


def _resolve(target: str, folder: str, config: MkDocsConfig) -> str:
    """A link that is relative to the repository's root, as a page in a folder of docs/ writes it."""
    name, hash_sign, anchor = target.partition("#")
    page = OF_THE_ROOT.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else "")
    if page:
        return posixpath.relpath(page, folder or ".") + hash_sign + anchor
    return f"{config.repo_url}/blob/main/{target}"
