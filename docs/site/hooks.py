"""What the site does to pages: the root's become pages of it, links out of docs/ lead to GitHub, and none loads a thing.

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
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="?https?:|<link\b(?=[^>]*stylesheet)[^>]*href="?https?:""")
LINK = re.compile(r"(?<=\]\()([^)\s:]+)(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the root's pages, with the links that they have in their new place."""
    for name, place in OF_THE_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        content = LINK.sub(lambda link: _rebase(link[1], place, config), text)
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to the site's own page, or to the file on GitHub."""
    folder = posixpath.dirname(page.file.src_uri)
    return LINK.sub(lambda link: _leave(link[1], folder, config), markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """A reader's visit is nobody else's business: what a page shows comes from the site itself."""
    if loaded := LOADED.search(output):
        LOG.warning("%s loads from elsewhere: %s", page.file.src_uri, loaded[0])
    return output


def _rebase(target: str, place: str, config: MkDocsConfig) -> str:
    return _resolve(target, posixpath.dirname(place), config) if not target.startswith("#") else target


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
