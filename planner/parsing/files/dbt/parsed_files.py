"""The files that dbt read for a manifest, by its partial_parse.msgpack: a manifest has no trace of YAML files."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from mergeplan.planner.errors import Place, ProjectError

NAME = "partial_parse.msgpack"
PROJECT, VARS = "dbt_project.yml", "vars.yml"
BY_NODE = ("model", "snapshot", "seed", "singular_test")  # of the project itself: a changed text refuses only the node
PACKAGES = ("dbt_packages", "dbt_modules")
UNREAD = ("analysis", "docs")  # without effect on rows
OF_STATE = "vars"  # the kind of vars.yml, whose hash is not that of its text: `manifest_vars` compares it
SUFFIXES = (".sql", ".csv", ".py", ".yml", ".yaml")
Read = Callable[[str], str | None]  # the text of a file of the project, None where there is none
AGAIN = "Make the manifest again."


@dataclass(frozen=True)
class ParsedFile:
    """A file that dbt read: path, package, kind, and the SHA-256 of its text, '' for a large seed."""

    path: str
    package: str
    kind: str
    hashed: str


def parsed_files(path: str, data: bytes, project: str) -> list[ParsedFile]:
    """Return the files of the project and of its packages; raise ProjectError for data that dbt did not write."""
    import msgpack  # only such a manifest needs it, and a triggerer of Airflow may lack it

    try:
        content = msgpack.unpackb(data, strict_map_key=False)
        return [*_list_files(content, project)]
    except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException):
        raise ProjectError("This is not what dbt writes beside a manifest.", place=Place(path, 1), hint=AGAIN) from None


def _list_files(content: Mapping[str, Any], project: str) -> Iterator[ParsedFile]:
    roots = {file["project_name"]: str(file["path"]["project_root"]) for file in content["files"].values()}
    root = roots[project]
    for file in content["files"].values():
        place, checksum = file["path"], file["checksum"]
        if file["parse_file_type"] != "hook":
            name = os.path.join(place["project_root"], place["searched_path"], place["relative_path"])
            hashed = checksum["checksum"] if checksum["name"] == "sha256" else ""
            yield from _project_file(root, name, file["project_name"], file["parse_file_type"], hashed)
    for package, checksum in content["state_check"]["project_hashes"].items():
        if package in roots:
            name = os.path.join(roots[package], PROJECT)
            yield from _project_file(root, name, package, "project", checksum["checksum"])
    if "vars_hash" in content["state_check"]:
        yield ParsedFile(VARS, project, OF_STATE, str(content["state_check"]["vars_hash"]["checksum"]))


def _project_file(root: str, name: str, package: str, kind: str, hashed: str) -> Iterator[ParsedFile]:
    """Yield the file unless it is outside the project, like dbt's own macros beside its program."""
    path = os.path.relpath(name, root)
    if not path.startswith(".."):
        yield ParsedFile(PurePosixPath(path).as_posix(), package, kind, str(hashed))


def check_parsed_files(
    manifest: str, parsed: Iterable[ParsedFile], project: str, files: Iterable[str], read: Read
) -> None:
    """Raise ProjectError for a file that differs from the one that dbt read, and for one that it did not know."""
    files_by_path = {file.path: file for file in parsed}
    for file in files_by_path.values():
        is_of_a_node = file.package == project and file.kind in BY_NODE
        if file.hashed and not is_of_a_node and file.kind not in (*UNREAD, OF_STATE):
            text = read(file.path)
            if text is None or file.hashed not in {_text_hash(text), _text_hash(text.strip())}:
                message = f"It is another file than when {manifest} was made."
                raise ProjectError(message, place=Place(file.path, 1), hint=AGAIN)
    tops = {
        _top_folder(file.path) for file in files_by_path.values() if file.kind not in (*UNREAD, OF_STATE, "project")
    }
    for path in files:
        if path.endswith(SUFFIXES) and _top_folder(path) in tops and path not in files_by_path:
            raise ProjectError(f"{manifest} does not know this file.", place=Place(path, 1), hint=AGAIN)


def _top_folder(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[: 3 if parts[0] in PACKAGES else 1])


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
