"""The addresses of the pages; `base` precedes each, '' for a server of its own."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode


def search_address(words: str, page: int = 1, base: str = "") -> str:
    values = {"q": words} | ({"page": str(page)} if page > 1 else {})
    return f"{base}/?{urlencode({name: value for name, value in values.items() if value})}"


def lineage_address(values: Mapping[str, object], base: str = "") -> str:
    """Return the address of the lineage with these options; empty ones are left out."""
    shown = {name: value for name, value in values.items() if value not in ("", None, ())}
    return f"{base}/lineage?{urlencode(shown, doseq=True)}"


def environment_address(name: str, base: str = "") -> str:
    return f"{base}/environments/{quote(name, safe='')}"


def page_links(base: str) -> dict[str, Any]:
    return {
        "link": lambda name: f"{base}/models/{quote(name, safe='')}",
        "home": f"{base}/",
        "search_link": partial(search_address, base=base),
        "lineage_link": lambda name: lineage_address({"focus": name}, base),
    }
