"""Names of a package that are imported at their first use: what needs none of them starts without their modules."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module


def import_name(package: str, homes: Mapping[str, tuple[str, ...]], name: str) -> object:
    """Import the name from the module that `homes` lists it under; raise AttributeError for any other name."""
    for home, names in homes.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
