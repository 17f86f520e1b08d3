"""The folders that are projects, and the files of a project that the server reads: by names, no file is opened."""

import os
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path, PurePosixPath

from mergeplan.planner.project.dbt.inputs import LEFT_OUT
from mergeplan.planner.project.pipeline_folder import SPECS, is_pipeline
from mergeplan.planner.project_format import DBT_PROJECT, is_dbt_project

OWN_CONFIGS = ("config.yaml", "config.yml", "config.py")
CONFIGS = (*OWN_CONFIGS, DBT_PROJECT, *SPECS)
TEXTS = ("config.yaml", "config.yml", "external_models.yaml", "external_models.yml", "exposures.yaml", "exposures.yml")
FOLDERS = ("models", "audits", "tests", "macros", "external_models", "exposures")
CODE_FOLDERS = ("models", "macros")  # whose Python has lenses and definitions
UNREAD = (*LEFT_OUT, "dbt_packages", "venv")  # folders of dbt projects and pipelines that hold no file of theirs
MOST_FILES = 20_000  # that are looked through for a name


class Layout(Enum):
    """The tool whose files a project has."""

    OWN = auto()
    DBT = auto()
    PIPELINE = auto()


def layout_of(root: Path) -> Layout:
    if is_dbt_project(root):
        return Layout.DBT
    return Layout.PIPELINE if is_pipeline(root) else Layout.OWN


def is_of_project(path: str, layout: Layout = Layout.OWN) -> bool:
    """Return True for a file whose text the project reads, by its path from the project's folder."""
    folder, _, name = path.rpartition("/")
    suffix = PurePosixPath(name).suffix
    if layout is not Layout.OWN:
        hidden = any(part.startswith(".") or part in UNREAD for part in folder.split("/"))
        return suffix in (".sql", ".yaml", ".yml") and not (folder and hidden)
    if not folder:
        return name in TEXTS
    top = folder.partition("/")[0]
    return (suffix in (".sql", ".yaml", ".yml") and top in FOLDERS) or (suffix == ".py" and top in CODE_FOLDERS)


def is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in CONFIGS)


def list_files(root: Path, *suffixes: str) -> Iterator[str]:
    """Yield the files of a dbt project or a pipeline, by their path from the root, the first `MOST_FILES`."""
    remaining_files = MOST_FILES
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith((".", "__pycache__")) and name not in UNREAD)
        for name in sorted(files):
            remaining_files -= 1
            if remaining_files < 0:
                return
            if name.endswith(suffixes):
                yield Path(folder, name).relative_to(root).as_posix()


def read_text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return None
