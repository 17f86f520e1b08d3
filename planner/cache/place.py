"""Where what was worked out before is kept on this machine."""

from collections.abc import Mapping
from pathlib import Path

CACHE = "MERGEPLAN_CACHE"
HOME = "MERGEPLAN_HOME"


def home_of(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the embedded Spark and state; None means `.mergeplan` in the project's folder."""
    return Path(environ[HOME]) if environ.get(HOME) else None


def cache_of(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of caches: MERGEPLAN_CACHE (`off`: none), else below MERGEPLAN_HOME or the user's.

    It is never in the project's folder: what is committed there would be believed.
    """
    folder, home = environ.get(CACHE, ""), home_of(environ)
    if folder:
        return None if folder == "off" else Path(folder).absolute()
    if home is not None:
        return home / "cache"
    from platformdirs import user_cache_path

    return user_cache_path("mergeplan", appauthor=False)
