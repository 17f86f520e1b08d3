"""A project's own packages: a folder that project code imports from, after mergeplan's own libraries.

The process that unpacks the packages writes beside them what each holds: the metadata of a wheel is not relied on.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mergeplan.planner.model.graph import reach_names

INDEX = "mergeplan-packages.json"  # distribution -> version, digest of its files, modules, what it requires


def versions_in(folder: Path, package: str) -> str:
    """Return the version of a package in the folder, by import name, with those of all that it requires there.

    Each version has a digest of the files. Return '' if the package is missing.
    """
    package_index = index_of(folder)
    names = [name for name, entry in package_index.items() if package in entry["modules"]]
    requirements = {name: package["requires"] for name, package in package_index.items()}
    return " ".join(
        f"{name} {package_index[name]['version']} {package_index[name]['digest']}"
        for name in sorted(package_index.keys() & reach_names(names, requirements))
    )


def normalize_name(name: str) -> str:
    """Return the name of a distribution in the form for comparisons."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def index_of(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the index of the folder; an empty one if it is missing."""
    try:
        index: Mapping[str, Mapping[str, Any]] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return index
