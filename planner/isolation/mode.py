"""The isolation mode of project code: the operator's settings, and its limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.addresses import AllowedAddress, parse_addresses
from mergeplan.planner.isolation.probe import cannot

VARIABLE = "MERGEPLAN_ISOLATION"
MEMORY = "MERGEPLAN_ISOLATION_MEMORY"
FUNCTIONS = "MERGEPLAN_ISOLATION_UDF"
PACKAGES = "MERGEPLAN_PACKAGES"  # a folder with the project's own packages
SPARK = "MERGEPLAN_ISOLATION_SPARK"
ADDRESSES = "MERGEPLAN_ISOLATION_SPARK_ADDRESSES"
FOLDERS = "MERGEPLAN_ISOLATION_SPARK_FOLDERS"
HIDDEN = "MERGEPLAN_ISOLATION_HIDDEN"  # from the bot: its home, its key's file, its database's
REQUIRED, AVAILABLE, NONE = "required", "available", "none"
ALLOW = "allow"


@dataclass(frozen=True)
class Isolation:
    """The isolation of project code: with `required`, it is isolated or does not run.

    `hidden` are files and folders that project code may not read even if they are below a folder that it may read.
    `memory` is how many GiB a process may take. With `functions`, functions in Python may run in workers of Spark that
    are not known to be isolated. `packages` is an additional folder that it imports from.
    """

    required: bool = False
    hidden: tuple[Path, ...] = ()
    memory: int = 8
    functions: bool = False
    packages: Path | None = None

    def hiding(self, path: Path) -> Isolation:
        return replace(self, hidden=(*self.hidden, path))


NO_ISOLATION = Isolation()


@dataclass(frozen=True)
class SparkAccess:
    """The operator's settings for the Java process of our own Spark, where project code is isolated.

    With `off` it is not confined. `addresses` are those that it may connect to, None if they are not set. `folders` are
    those that it may read and write besides its own.
    """

    off: bool = False
    addresses: tuple[AllowedAddress, ...] | None = None
    folders: tuple[Path, ...] = ()


def spark_access_of(environ: Mapping[str, str]) -> SparkAccess:
    """Return the settings of the environment; raise RequestError for an invalid value."""
    mode = environ.get(SPARK, "") or AVAILABLE
    if mode not in (AVAILABLE, NONE):
        raise RequestError(f"{SPARK} is `{mode}`.", hint=f"Use `{NONE}`, or remove it.")
    folders = [Path(entry) for entry in environ.get(FOLDERS, "").split(os.pathsep) if entry]
    if relative := [folder for folder in folders if not folder.is_absolute()]:
        raise RequestError(f"{FOLDERS} holds `{relative[0]}`.", hint="Write absolute paths.")
    text = environ.get(ADDRESSES)
    addresses = None if text is None else parse_addresses(text, ADDRESSES)
    return SparkAccess(mode == NONE, addresses, tuple(folders))


def isolation_of(environ: Mapping[str, str]) -> Isolation:
    """Return the settings of the environment, by default no isolation; raise RequestError for an invalid value.

    `available` isolates if this machine can, and lets project code run if it cannot.
    """
    mode = environ.get(VARIABLE, "") or NONE
    if mode not in (REQUIRED, AVAILABLE, NONE):
        raise RequestError(f"{VARIABLE} is `{mode}`.", hint=f"Use `{REQUIRED}`, `{AVAILABLE}` or `{NONE}`.")
    memory = environ.get(MEMORY, "") or "8"
    if not memory.isdecimal() or not 1 <= int(memory) <= 65_536:
        raise RequestError(f"{MEMORY} is `{memory}`.", hint="Set how many GiB project code may use, at least 1.")
    functions = environ.get(FUNCTIONS, "")
    if functions not in ("", ALLOW):
        raise RequestError(f"{FUNCTIONS} is `{functions}`.", hint=f"Use `{ALLOW}`, or remove it.")
    hidden = tuple(Path(folder) for folder in environ.get(HIDDEN, "").split(os.pathsep) if folder)
    packages = Path(environ[PACKAGES]).resolve() if environ.get(PACKAGES) else None
    if packages is not None and not packages.is_dir():
        raise RequestError(f"{PACKAGES} is `{packages}`, which is no folder.")
    required = mode == REQUIRED or (mode == AVAILABLE and not cannot())
    return Isolation(required, hidden, int(memory), functions == ALLOW, packages)
