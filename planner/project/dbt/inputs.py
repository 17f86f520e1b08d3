"""Find a dbt project's files, its Python and its profiles.yml, with cheap imports for those that only look."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mergeplan.planner.errors import RequestError

PROFILES = "profiles.yml"
PYTHON = "MERGEPLAN_DBT_PYTHON"  # the Python that has the project's dbt
VARIABLES = "MERGEPLAN_DBT_VARIABLES"  # names of the environment variables that a dbt project may read, with commas
SECRET = "DBT_ENV_SECRET"  # noqa: S105  # how dbt calls variables that nobody may see
OWN = ("DBT_PROFILES_DIR", "DBT_TARGET", "DBT_PROJECT_DIR", "DBT_TARGET_PATH", "DBT_LOG_PATH")
IGNORE = ".dbtignore"  # which files dbt does not read: the one hidden file that it does
OWN_TESTS = "mergeplan_tests"  # the folder of unit tests in our own format: dbt reads the YAML of `tests`
LEFT_OUT = ("target", "logs", "node_modules")  # folders of the root that dbt writes, or does not read
UNREAD = (".git", "__pycache__")  # folders anywhere
PATHS = {  # the settings of dbt_project.yml that name folders, with what holds without them
    "model-paths": ["models"], "seed-paths": ["seeds"], "snapshot-paths": ["snapshots"], "test-paths": ["tests"],
    "macro-paths": ["macros"], "analysis-paths": ["analyses"], "function-paths": ["functions"],
    "packages-install-path": ["dbt_packages"], "docs-paths": [], "asset-paths": [], "source-paths": [],
    "data-paths": [],
}  # fmt: skip


def project_files(root: Path) -> Iterator[str]:
    """Yield every file that dbt may read, by its path from the root; follow no link to a folder."""
    for folder, names, files in os.walk(root):
        is_root = folder == str(root)
        names[:] = sorted(name for name in names if name not in UNREAD and not (is_root and _is_apart(name)))
        for name in sorted(files):
            if (name == IGNORE or not name.startswith(".")) and (path := Path(folder, name)).is_file():
                yield path.relative_to(root).as_posix()


def lies_apart(root: Path, settings: Mapping[str, object]) -> bool:
    """Return True if dbt may read more than `project_files`: in outside, hidden or templated folders, or by links."""
    values = [settings.get(name) or usual for name, usual in PATHS.items()]
    folders = {str(folder) for value in values for folder in (value if isinstance(value, list) else [value])}
    tops = {folder.partition("/")[0] for folder in folders}
    if any(_is_apart(top) or top == "" or "{" in top for top in tops) or any(".." in folder for folder in folders):
        return True
    return any(_has_link(root / top) for top in tops)


def _is_apart(name: str) -> bool:
    """Return True for a folder of the root whose files are not read."""
    return name.startswith(".") or name in LEFT_OUT or name in UNREAD


def _has_link(folder: Path) -> bool:
    if folder.is_symlink():
        return True
    walk = os.walk(folder)
    return any(os.path.islink(f"{inside}/{name}") for inside, names, _ in walk for name in names)


def visible_variables(environment: Mapping[str, str]) -> dict[str, str]:
    allowed = {name.strip() for name in environment.get(VARIABLES, "").split(",")}
    return {
        name: value
        for name, value in environment.items()
        if (name in allowed or (name.startswith("DBT_") and name not in OWN)) and not name.startswith(SECRET)
    }


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an operator's own file may read: all but those named as secrets."""
    return {name: value for name, value in environment.items() if not name.startswith(SECRET)}


def find_python(environment: Mapping[str, str]) -> str:
    """Return the Python that has a dbt: the operator's, this one, or the PATH's; raise RequestError without one."""
    if chosen := environment.get(PYTHON):
        if not os.access(chosen, os.X_OK) or os.path.isdir(chosen):
            hint = "Name the Python of the environment that has dbt, by its whole path: /opt/dbt/bin/python."
            raise RequestError(f"{PYTHON} is `{chosen}`, which is no program.", hint=hint)
        return os.path.abspath(chosen)  # a link says which environment it is of
    from importlib.metadata import PackageNotFoundError, distribution

    with suppress(PackageNotFoundError):
        distribution("dbt-core")
        return sys.executable
    program = shutil.which("dbt", path=environment.get("PATH", ""))
    python = Path(program).parent / "python" if program else None
    if python is not None and python.is_file():
        return str(python)
    hint = f"Install the project's dbt-core and adapter beside mergeplan, or set {PYTHON} to the Python that has them."
    raise RequestError("This is a dbt project, and there is no dbt.", hint=hint)


def look_of_python(python: str) -> str:
    """Return the state of an interpreter and its libraries: other versions were written at other times."""
    folder = Path(python).parent.parent / "lib"
    places = [Path(python), *sorted(folder.glob("python*/site-packages"))]
    return repr([(str(place), place.stat().st_mtime_ns) for place in places if place.exists()])


def profiles_path(root: Path, environment: Mapping[str, str]) -> Path:
    """Return the path of the profiles.yml that dbt would read, even if it does not exist."""
    if folder := environment.get("DBT_PROFILES_DIR"):
        return root / folder / PROFILES
    return root / PROFILES if (root / PROFILES).is_file() else Path.home() / ".dbt" / PROFILES
