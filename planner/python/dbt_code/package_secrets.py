"""The secrets with which `dbt deps` fetches packages: nothing is fetched here, so each is a stand-in text."""

import re
from collections.abc import Iterator
from pathlib import Path

FILES = ("packages.yml", "dependencies.yml")
STAND_IN = "unknown"
_NAME = re.compile(r"\bDBT_ENV_SECRET\w*")  # dbt lets no other file of a project read one


def stand_ins(root: Path) -> dict[str, str]:
    """Return a value for each secret that the lists of packages name: dbt fails on one that is not set."""
    return {name: STAND_IN for text in _read_package_lists(root) for name in _NAME.findall(text)}


def _read_package_lists(root: Path) -> Iterator[str]:
    for folder in (root, *root.glob("dbt_packages/*"), *root.glob("dbt_modules/*")):
        for name in FILES:
            if (path := folder / name).is_file():
                yield path.read_text(encoding="utf-8", errors="replace")
