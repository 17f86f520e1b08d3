"""The style, the script and the icon of the pages; an address has the digest, so that a browser may store the file."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mergeplan.planner.site.pages import TEMPLATES as SITE

FOLDER = Path(__file__).parent / "assets"
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
# Of each asset the files that it is made of: the pages look like those of `mergeplan docs`.
PARTS = {
    "style.css": (SITE / "primer.css", SITE / "style.css", SITE / "header.css", FOLDER / "ui.css"),
    "ui.js": (FOLDER / "ui.js",),
    "icon.svg": (FOLDER / "icon.svg",),
}


@dataclass(frozen=True)
class Asset:
    url: str
    content: bytes = field(repr=False)
    media_type: str
    integrity: str


@cache
def load_assets() -> Mapping[str, Asset]:
    return {name: _load_asset(name, paths) for name, paths in PARTS.items()}


@cache
def assets_by_url() -> Mapping[str, Asset]:
    return {asset.url: asset for asset in load_assets().values()}


def _load_asset(name: str, paths: tuple[Path, ...]) -> Asset:
    content = b"".join(path.read_bytes() for path in paths)
    stem, _, ending = name.rpartition(".")
    digest = hashlib.sha256(content).hexdigest()[:16]
    integrity = b64encode(hashlib.sha384(content).digest()).decode()
    return Asset(f"/assets/{stem}-{digest}.{ending}", content, TYPES[ending], f"sha384-{integrity}")
