"""The variables by which a manifest was made: dbt 1.12 keeps a hash of them, the only trace of `vars.yml`."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pprint import pformat
from typing import Any

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.dbt.manifest_types import Arguments
from mergeplan.planner.parsing.sql.yaml_documents import read_document

VARS, PROJECT = "vars.yml", "dbt_project.yml"
SINCE = (1, 12)
OF_PACKAGE = re.compile(r"(dbt_packages|dbt_modules)/[^/]+/vars\.yml")
_VERSION = re.compile(r"(\d+)\.(\d+)")
Read = Callable[[str], str | None]


def reads_vars(version: str) -> bool:
    """Return True if a dbt of this version reads `vars.yml`, or if the version is not known as an older one."""
    numbers = _VERSION.match(version)
    return not version or numbers is None or (int(numbers[1]), int(numbers[2])) >= SINCE


def vars_hash(version: str, arguments: Arguments, profile: str, target: str, variables: Mapping[str, Any]) -> str:
    """Return the hash that dbt keeps of the variables of the command line and of `vars.yml`."""
    parts = [pformat(arguments.vars), arguments.profile or profile, arguments.target or target, version]
    parts += [pformat(variables)] if variables else []
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def check_vars(manifest: str, version: str, hashed: str, arguments: Arguments, target: str, read: Read) -> None:
    """Raise ProjectError unless the manifest was made with the variables of `vars.yml` as it is."""
    profile = str(_read_yaml(PROJECT, read).get("profile") or "")
    variables = _read_yaml(VARS, read).get("vars")
    if vars_hash(version, arguments, profile, target, variables if isinstance(variables, Mapping) else {}) != hashed:
        message = f"{manifest} was made with other variables than those of `{VARS}`, or does not say for which target."
        hint = "Make it again, and name the target: `dbt compile --full-refresh --target prod`."
        raise ProjectError(message, place=Place(VARS if variables else manifest, 1), hint=hint)


def refuse_vars_of_packages(manifest: str, files: Iterable[str]) -> None:
    """Raise ProjectError for the `vars.yml` of a package, of which dbt keeps nothing."""
    for path in files:
        if OF_PACKAGE.fullmatch(path):
            raise ProjectError(f"{manifest} does not say by which text of this file it was made.",
                               place=Place(path, 1), hint="Let mergeplan ask dbt itself.")  # fmt: skip


def _read_yaml(path: str, read: Read) -> Mapping[str, Any]:
    value = read_document(path, read(path) or "", last_wins=True).value
    return value if isinstance(value, Mapping) else {}
