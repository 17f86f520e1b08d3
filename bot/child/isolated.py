"""Whether this service isolates projects' code, as text for its log and /readyz, and which files bring code."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from mergeplan.bot.child.requirements import FILES
from mergeplan.bot.settings import Settings
from mergeplan.planner.isolation.mode import NONE, SPARK, VARIABLE
from mergeplan.planner.isolation.probe import cannot, cannot_confine
from mergeplan.planner.project_format import is_dbt_project

CONFINED = "confined"
NO_CODE = frozenset({".sql", ".yaml", ".yml", ".csv", ".md", ".rst", ".txt"})


def brings_code(changed_files: Iterable[str], project: Path) -> bool:
    """Return True if a change of these paths may change code that the child would run; in doubt it may.

    dbt runs the templates of every file in its project, `.md` too.

    >>> empty = Path("/nonexistent")
    >>> brings_code(["models/a.sql", "README.md"], empty), brings_code(["models/a.py"], empty)
    (False, True)
    """
    paths = [PurePosixPath(path) for path in changed_files]
    return bool(paths and is_dbt_project(project)) or any(
        path.suffix.lower() not in NO_CODE or path.name in FILES for path in paths
    )


def isolation_words(settings: Settings) -> str:
    """Return `required`, or a sentence that says why nothing is isolated, or why pull requests with code are held."""
    if settings.isolation == NONE:
        return "none: the code of projects may do what this user may (MERGEPLAN_ISOLATION=none)"
    if obstacle := cannot():
        return f"not possible here ({obstacle}): pull requests that bring code of their own are held"
    return settings.isolation


def confinement_words(settings: Settings) -> str:
    """Return `confined`, or the reason why a Spark that a planner starts is not."""
    if settings.isolation == NONE or settings.isolation_spark == NONE:
        variable = SPARK if settings.isolation_spark == NONE else VARIABLE
        return f"none: Spark's Java may do what this user may ({variable}=none)"
    if obstacle := cannot_confine():
        return f"not possible here ({obstacle})"
    return CONFINED
