"""The packages that a dbt project asks for, read from its files without running any of them. Pure.

Only packages of dbt's hub, by name and version, and folders of the project are taken: a repository or an address in a
file of a pull request would let it choose what the service connects to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.project.dbt.inputs import PATHS, PROJECT

LOCK = "package-lock.yml"
ASKING = ("packages.yml", "dependencies.yml", LOCK)
FILES = (PROJECT, *ASKING)
MOST_CHARACTERS = 256 << 10  # of one of them
INSTALL_PATH = "packages-install-path"
NAME = re.compile(r"[\w.-]+/[\w.-]+")
COMMIT = "Commit the folder that `dbt deps` makes (`dbt_packages`): what lies in the repository is not fetched."


@dataclass(frozen=True)
class NotTaken:
    """Why a package is not fetched, and where it is asked for: no error where the repository holds the packages."""

    message: str
    path: str
    line: int


@dataclass(frozen=True)
class DbtRequirements:
    """What a dbt project asks for: the file that does, where it wants the packages, and its own folders among them."""

    path: str
    install_path: str
    local: tuple[str, ...] = ()
    wrong: NotTaken | None = None  # the first package that cannot be fetched


def dbt_requirements_of(read: Callable[[str], str | None]) -> DbtRequirements | None:
    """What the files of a dbt project ask for; None when that is nothing. ProjectError for a file that is no YAML."""
    texts = {path: text for path in FILES if (text := read(path)) is not None}
    if long := next((path for path, text in texts.items() if len(text) > MOST_CHARACTERS), ""):
        raise ProjectError(f"It is longer than {MOST_CHARACTERS:,} characters.", place=Place(long))
    documents = {path: read_document(path, text, last_wins=True) for path, text in texts.items()}
    asking = [path for path in ASKING if path in documents and any(_entries(documents[path]))]
    if PROJECT not in documents or not set(asking) - {LOCK}:
        return None
    local, wrong = list[str](), None
    for path in asking:
        for index, entry in _entries(documents[path]):
            try:
                local.append(_local_folder(documents[path], index, entry))
            except ProjectError as error:
                wrong = wrong or NotTaken(error.message, path, error.place.line if error.place else 1)
    folders = tuple(dict.fromkeys(filter(None, local)))
    return DbtRequirements(asking[0], _install_path(documents[PROJECT]), folders, wrong)


def _entries(document: Document) -> Iterator[tuple[int, object]]:
    packages = document.value.get("packages") if isinstance(document.value, dict) else None
    return iter(enumerate(packages if isinstance(packages, list) else ()))


def _local_folder(document: Document, index: int, entry: object) -> str:
    """The folder of a package of the project's own; '' for one of the hub. ProjectError for one that is not taken."""
    at = ("packages", index)
    if not isinstance(entry, dict):
        raise document.error(at, "This is not a package.", COMMIT)
    if "{{" in str(entry):
        raise document.error(at, "A template in the name or version of a package is not followed here.", COMMIT)
    if "local" in entry:
        folder = PurePosixPath(str(entry["local"]))
        if folder.is_absolute() or ".." in folder.parts or not folder.parts:
            raise document.error(at, f"The folder `{folder}` is not below the project's.", COMMIT)
        return folder.as_posix()
    if not NAME.fullmatch(str(entry.get("package", ""))):
        source = next((key for key in ("git", "tarball", "private") if key in entry), "")
        what = f"A package by `{source}` is not fetched here" if source else "This is not a package of dbt's hub"
        raise document.error(at, f"{what}: a pull request does not choose what the service connects to.", COMMIT)
    return ""


def _install_path(document: Document) -> str:
    """The folder of the project that its packages lie in."""
    settings = document.value if isinstance(document.value, dict) else {}
    folder = PurePosixPath(str(settings.get(INSTALL_PATH) or PATHS[INSTALL_PATH][0]))
    if folder.is_absolute() or not folder.parts or "{{" in str(folder) or {"..", ".git"} & set(folder.parts):
        raise document.error((INSTALL_PATH,), f"The folder `{folder}` is not below the project's.", COMMIT)
    return folder.as_posix()
