"""Jars that Spark fetches when it starts: how long that may take, and the error if they cannot be fetched."""

import re
from collections.abc import Mapping
from pathlib import Path

from mergeplan.planner.engine.formats.tested_pairs import PACKAGES, how_to_bring
from mergeplan.planner.errors import RequestError

FETCHING = 600.0  # seconds for the first start; afterwards they are in Spark's folder of fetched jars
UNRESOLVED = re.compile(r"unresolved dependency: ([\w.-]+)#([\w.-]+);([\w.-]+)")


def start_timeout(conf: Mapping[str, str], usual: float) -> float:
    return FETCHING if conf.get(PACKAGES) else usual


def resolution_error(conf: Mapping[str, str], log: Path, began: int) -> RequestError | None:
    """Return the error of jars that could not be fetched, from Spark's log since `began`; None for another cause."""
    if not conf.get(PACKAGES):
        return None
    with log.open("rb") as file:
        file.seek(began)
        text = file.read().decode("utf-8", "replace")
    missing = sorted({":".join(match) for match in UNRESOLVED.findall(text)})
    if not missing:
        return None
    return RequestError(f"Spark cannot fetch {', '.join(missing)}.", hint=how_to_bring(conf[PACKAGES]))
