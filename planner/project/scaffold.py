"""`mergeplan init`: the quickstart's project, or an empty one, written into a folder."""

import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.configuration import CONFIGS

FOLDERS = ("models", "seeds", "audits", "tests", "macros")
IGNORED = (".mergeplan/", "spark-warehouse/", "metastore_db/", "derby.log", "__pycache__/")
Template = Literal["default", "empty"]
FLOW = b"""
# --- CLI mode FLOW: shorter output and no prompt ---
plan:
  no_diff: true      # leave out how the texts differ
  auto_apply: true   # apply what was planned without asking
"""


@dataclass(frozen=True)
class Wishes:
    """What a new project is to have: files, a Spark (`remote: sc://host:15002`, '' for this machine's), a CLI mode."""

    template: Template = "default"
    spark: str = ""
    flow: bool = False


def write_project(target: Path, wishes: Wishes) -> tuple[Path, ...]:
    """Write the template's files and return them, relative to the folder; raise RequestError if one exists already.

    The files are prepared in another place and then moved, config.yaml last: a folder with a config.yaml is a whole
    project.
    """
    contents = {name: data for name, data in _template_files() if wishes.template == "default" or name == "config.yaml"}
    text = contents["config.yaml"]
    connection = b"      type: spark\n"
    if wishes.spark:
        text = text.replace(connection, connection + f"      {wishes.spark}\n".encode(), 1)
    contents["config.yaml"] = text + FLOW if wishes.flow else text
    for name in dict.fromkeys((*CONFIGS, *contents)):
        if (target / name).exists():
            message = f"`{target / name}` exists already: nothing was written."
            raise RequestError(message, hint="Choose an empty folder." if "/" in name else "This is a project already.")
    target.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".mergeplan-init-", dir=target))
    try:
        for name, data in contents.items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_bytes(data)
        for folder in FOLDERS:
            (target / folder).mkdir(exist_ok=True)
        for name in sorted(contents, key=lambda name: (name == "config.yaml", name)):
            (aside / name).replace(target / name)
        ignored = _write_gitignore(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return tuple(Path(name) for name in sorted((*contents, *ignored)))


def _write_gitignore(target: Path) -> tuple[str, ...]:
    """Add to .gitignore what is of one machine only; lines that are there stay as they are."""
    file = target / ".gitignore"
    text = file.read_text("utf-8") if file.is_file() else ""
    missing = [line for line in IGNORED if line not in text.split("\n")]
    if not missing:
        return ()
    start = text if not text or text.endswith("\n") else f"{text}\n"
    file.write_text(start + "".join(f"{line}\n" for line in missing), "utf-8")
    return (file.name,)


def _template_files() -> list[tuple[str, bytes]]:
    contents: list[tuple[str, bytes]] = []

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.name.startswith("__"):
                walk(entry, f"{prefix}{entry.name}/")
            elif entry.is_file():
                contents.append((prefix + entry.name, entry.read_bytes()))

    walk(files("mergeplan.planner.project") / "example", "")
    return contents
