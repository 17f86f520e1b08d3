"""The packages that a dbt project asks for, read from its files without running any of them. Pure.

Only packages of dbt's hub, by name and version, and folders of the project are taken: a repository or an address in a
file of a pull request would let it choose what the service connects to. `dbt deps` reads none of these files: it reads
what is written here from the values that were judged, so that it sees no template and nothing else that we did not.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.parsing.sql.yaml_documents import Path as KeyPath
from mergeplan.planner.project.dbt.inputs import PATHS
from mergeplan.planner.project_format import DBT_PROJECT

PACKAGES, DEPENDENCIES, LOCK = "packages.yml", "dependencies.yml", "package-lock.yml"
FILES = (DBT_PROJECT, PACKAGES, DEPENDENCIES, LOCK)
CHARACTERS_MAX = 256 << 10  # of one of them
FOLDERS_MAX = 200  # of packages in a project
INSTALL_PATH = "packages-install-path"
NAME = re.compile(r"[\w.-]+/[\w.-]+")
VERSION = re.compile(r"[\w.*+!<>=~^, -]{1,200}")
PROJECT_NAME = re.compile(r"[A-Za-z_]\w{0,200}", re.ASCII)
LOCK_HASH = re.compile(r"[0-9a-f]{1,128}")
TEMPLATE = re.compile(r"\{[{%#]")
SETTINGS = ("package", "version", "install-prerelease", "install_prerelease", "local", "name")
ROOT_NAME = "mergeplan_packages"  # of the project that dbt sees
COMMIT = "Commit the folder that `dbt deps` makes (`dbt_packages`): packages in the repository are not fetched."
Texts = Callable[[str], str | None]


@dataclass(frozen=True)
class NotTaken:
    """The reason why a package is not fetched, with its place; no error if the repository contains the packages."""

    message: str
    path: str
    line: int


@dataclass(frozen=True)
class DbtRequirements:
    """The packages that a dbt project requires: the file that names them, their folder, and local ones among them.

    `files` are the texts that `dbt deps` gets, by their paths; `unread` are folders whose files were not given.
    """

    path: str
    install_path: str
    local: tuple[str, ...] = ()
    wrong: NotTaken | None = None  # the first package that cannot be fetched
    files: Mapping[str, str] | None = None
    unread: tuple[str, ...] = ()


def dbt_requirements_of(read: Texts) -> DbtRequirements | None:
    """Return the requirements in the files of a dbt project, None for none; raise ProjectError for invalid YAML."""
    documents = _read_folder(read, "")
    if DBT_PROJECT not in documents or not (asking := _find_package_files(documents)):
        return None
    local, files = dict[str, str](), dict[str, str]()
    wrong: NotTaken | None = None
    try:
        files |= _write_root(documents, local)
        _add_folders(read, local, files)
    except ProjectError as error:
        place = error.place or Place(asking[0])
        wrong = NotTaken(error.message, place.path, place.line or 1)
    unread = tuple(folder for folder in local if f"{folder}/{DBT_PROJECT}" not in files)
    install_path = _install_path(documents[DBT_PROJECT])
    return DbtRequirements(asking[0], install_path, tuple(local), wrong, files, () if wrong else unread)


def _read_folder(read: Texts, folder: str) -> dict[str, Document]:
    documents = {}
    for name in FILES:
        path = f"{folder}/{name}" if folder else name
        if (text := read(path)) is None or (folder and name == LOCK):  # dbt reads no lock but the project's
            continue
        if len(text) > CHARACTERS_MAX:
            raise ProjectError(f"It is longer than {CHARACTERS_MAX:,} characters.", place=Place(path))
        documents[name] = read_document(path, text, last_wins=True)
    return documents


def _find_package_files(documents: Mapping[str, Document]) -> list[str]:
    """Return the names of the files that ask for packages; the lock alone asks for none."""
    names = (PACKAGES, DEPENDENCIES)
    return [name for name in names if name in documents and any(_list_entries(documents[name]))]


def _write_root(documents: Mapping[str, Document], local: dict[str, str]) -> dict[str, str]:
    """Return the texts of the project itself, and add its folders to `local`."""
    files = {PACKAGES: json.dumps({"packages": _take_packages(documents, local)}, ensure_ascii=False)}
    if (lock := documents.get(LOCK)) is not None:
        entries = [_take_entry(lock, index, entry, local) for index, entry in _list_entries(lock)]
        sha = lock.value.get("sha1_hash") if isinstance(lock.value, dict) else None
        if isinstance(sha, str) and LOCK_HASH.fullmatch(sha):  # without it dbt resolves anew
            files[LOCK] = json.dumps({"packages": entries, "sha1_hash": sha}, ensure_ascii=False)
    return files


def _add_folders(read: Texts, local: dict[str, str], files: dict[str, str]) -> None:
    """Add the texts of the project's own folders, and of those that they name, as dbt does: all from the root."""
    waiting = list(local)
    while waiting:
        folder = waiting.pop(0)
        if len(local) > FOLDERS_MAX:
            raise ProjectError(f"There are more than {FOLDERS_MAX} folders of packages.", place=Place(local[folder]))
        documents = _read_folder(read, folder)
        if DBT_PROJECT not in documents:
            continue
        earlier_folders = set(local)
        packages = _take_packages(documents, local)
        files[f"{folder}/{DBT_PROJECT}"] = json.dumps({"name": _project_name(documents[DBT_PROJECT]), "version": "1.0"})
        files[f"{folder}/{PACKAGES}"] = json.dumps({"packages": packages}, ensure_ascii=False)
        waiting += [name for name in local if name not in earlier_folders]


def _take_packages(documents: Mapping[str, Document], local: dict[str, str]) -> list[dict[str, Any]]:
    """Return the packages that a folder's files require; raise ProjectError for one that cannot be fetched."""
    packages, sources = list[dict[str, Any]](), list[str]()
    for name in (PACKAGES, DEPENDENCIES):
        if name in documents and "packages" in _get_mapping(documents[name]):
            packages += [
                _take_entry(documents[name], index, entry, local) for index, entry in _list_entries(documents[name])
            ]
            sources.append(name)
    if len(sources) > 1:
        raise documents[DEPENDENCIES].error(("packages",), f"`packages` is in {PACKAGES}, too: dbt takes one.", COMMIT)
    return packages


def _get_mapping(document: Document) -> dict[Any, Any]:
    return document.value if isinstance(document.value, dict) else {}


def _list_entries(document: Document) -> Iterator[tuple[int, object]]:
    packages = _get_mapping(document).get("packages")
    return iter(enumerate(packages if isinstance(packages, list) else ()))


def _take_entry(document: Document, index: int, entry: object, local: dict[str, str]) -> dict[str, Any]:
    """Return one package as dbt is to read it, and add its folder to `local`; raise ProjectError if it is refused."""
    at: KeyPath = ("packages", index)
    if not isinstance(entry, dict):
        raise document.error(at, "This is not a package.", COMMIT)
    _refuse_templates(document, at, entry)
    if "local" not in entry and not NAME.fullmatch(str(entry.get("package", ""))):
        source = next((key for key in ("git", "tarball", "private") if key in entry), "")
        problem = f"A package by `{source}` is not fetched here" if source else "This is not a package of dbt's hub"
        raise document.error(at, f"{problem}: a pull request does not choose what the service connects to.", COMMIT)
    for key, value in entry.items():
        _check_setting(document, at, key, value)
    if "local" in entry:
        local.setdefault(_local_folder(document, (*at, "local"), entry["local"]), document.path)
    return dict(entry)


def _refuse_templates(document: Document, at: KeyPath, value: object) -> None:
    """Raise ProjectError at the line of a text in which dbt would run a template."""
    if isinstance(value, str) and TEMPLATE.search(value):
        raise document.error(at, "A template in the entry of a package is not followed here.", COMMIT)
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        _refuse_templates(document, at, key)
        _refuse_templates(document, (*at, str(key) if isinstance(value, dict) else key), part)


def _check_setting(document: Document, at: KeyPath, key: object, value: object) -> None:
    """Raise ProjectError for a setting of a package that is not known, or a value that is none."""
    if key not in SETTINGS:
        raise document.error((*at, str(key)), f"`{key}` is no setting of a package that is fetched here.", COMMIT)
    versions = value if isinstance(value, list) else [value]
    if key == "version" and not all(_is_version(version) for version in versions):
        raise document.error((*at, "version"), f"`{str(value)[:80]}` is no version.", COMMIT)
    if key in ("install-prerelease", "install_prerelease") and not isinstance(value, bool | None):
        raise document.error((*at, str(key)), f"`{key}` must be true or false.", COMMIT)
    if key == "name" and not (value is None or (isinstance(value, str) and re.fullmatch(r"[\w.-]{1,200}", value))):
        raise document.error((*at, "name"), f"`{str(value)[:80]}` is no name of a package.", COMMIT)


def _is_version(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and bool(VERSION.fullmatch(str(value)))


def _local_folder(document: Document, at: KeyPath, value: object) -> str:
    folder = PurePosixPath(str(value))
    odd = folder.is_absolute() or not folder.parts or {"..", ".git"} & set(folder.parts)
    if odd or not str(value).isprintable() or folder.parts[0].startswith("~"):
        raise document.error(at, f"The folder `{folder}` is not below the project's.", COMMIT)
    return folder.as_posix()


def _project_name(document: Document) -> str:
    """Return the name of a package in a folder, which dbt uses unchanged."""
    name = _get_mapping(document).get("name")
    if not isinstance(name, str) or not PROJECT_NAME.fullmatch(name):
        raise document.error(("name",), f"`{str(name)[:80]}` is no name of a dbt project.", COMMIT)
    return name


def _install_path(document: Document) -> str:
    folder = PurePosixPath(str(_get_mapping(document).get(INSTALL_PATH) or PATHS[INSTALL_PATH][0]))
    template = TEMPLATE.search(str(folder))
    if folder.is_absolute() or not folder.parts or template or {"..", ".git"} & set(folder.parts):
        raise document.error((INSTALL_PATH,), f"The folder `{folder}` is not below the project's.", COMMIT)
    return folder.as_posix()
