"""A project's own packages: a folder that project code imports from, after mergeplan's own libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

DIGEST = "mergeplan.sha256"  # beside a distribution's metadata: a digest of its files


def versions_in(folder: Path, package: str) -> str:
    """The version of a package that is imported by this name from the folder, with a digest of its files and with all
    that it requires there; '' when it is not there."""
    known = _known(folder)
    found = [name for name, (_, modules, _) in known.items() if package in modules]
    return " ".join(known[name][0] for name in sorted(_closure(found, known)))


def _closure(names: Iterable[str], known: Mapping[str, tuple[str, frozenset[str], frozenset[str]]]) -> set[str]:
    found: set[str] = set()
    frontier = list(names)
    while frontier:
        name = frontier.pop()
        if name in known and name not in found:
            found.add(name)
            frontier += known[name][2]
    return found


@cache
def _known(folder: Path) -> Mapping[str, tuple[str, frozenset[str], frozenset[str]]]:
    """Each distribution by name: its version as text, the modules that it has, and what it requires."""
    found = {}
    for each in distributions(path=[str(folder)]):
        name = _normal(each.name)
        text = f"{name} {each.version} {(each.read_text(DIGEST) or '').strip()}"
        found[name] = text, _modules(each), frozenset(map(_required, each.requires or ()))
    return found


def _modules(each: Distribution) -> frozenset[str]:
    """The first parts of the names by which a distribution's files are imported."""
    parts = (path.parts for path in each.files or () if path.parts and not path.parts[0].endswith(".dist-info"))
    return frozenset(first[0].partition(".")[0] for first in parts)


def _required(text: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", text)
    return _normal(found[0]) if found else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
