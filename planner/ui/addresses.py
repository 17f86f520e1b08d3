"""The addresses of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode


def model_address(name: str) -> str:
    """The page of a model."""
    return f"/models/{quote(name, safe='')}"


def search_address(words: str, page: int = 1) -> str:
    """The catalog with a search."""
    values = {"q": words} | ({"page": str(page)} if page > 1 else {})
    return f"/?{urlencode({name: value for name, value in values.items() if value})}"


def lineage_address(values: Mapping[str, object]) -> str:
    """The lineage with these options; those that are empty are left out."""
    shown = {name: value for name, value in values.items() if value not in ("", None, ())}
    return f"/lineage?{urlencode(shown, doseq=True)}"
