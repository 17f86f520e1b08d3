"""Read the files of MERGEPLAN_SECRETS_DIR as variables; an error names the file and shows nothing of its content."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from mergeplan.planner.errors import RequestError

PREFIX = "mergeplan_"
BOM = "\ufeff"


def check_secret_files(folder: Path, names: Collection[str], environ: Mapping[str, str]) -> None:
    """Raise RequestError for an unusable secret file.

    It is no variable of these names, leads elsewhere, cannot be read as text, or an empty variable of the environment
    would go before it. A file without the prefix is left alone.
    """
    files_by_name: dict[str, Path] = {}
    for path in list_secret_files(folder):
        name = path.name.lower()
        if name.removeprefix(PREFIX) not in names:
            raise RequestError(f"MERGEPLAN_SECRETS_DIR is not usable: `{path.name}` is the name of no variable.")
        if name in files_by_name:
            raise RequestError(
                f"MERGEPLAN_SECRETS_DIR is not usable: `{files_by_name[name].name}` and `{path.name}` are one variable."
            )
        files_by_name[name] = path
        if any(variable.lower() == name and not value for variable, value in environ.items()):
            raise RequestError(
                f"{name.upper()} is empty in the environment, and is a file in MERGEPLAN_SECRETS_DIR, too.",
                hint="Unset the variable, which goes before its file; or remove the file.",
            )
        _check_text(path)


def list_secret_files(folder: Path) -> list[Path]:
    """Return the files with mergeplan's prefix, sorted; raise RequestError if the folder cannot be listed."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.lower().startswith(PREFIX))
    except OSError as error:
        message = f"MERGEPLAN_SECRETS_DIR is not usable: `{folder}` cannot be listed: {error.strerror}."
        raise RequestError(message) from None


def _check_text(path: Path) -> None:
    if not path.resolve().is_relative_to(path.parent.resolve()):
        message = f"MERGEPLAN_SECRETS_DIR: `{path.name}` is a link to a file outside of the folder."
        raise RequestError(message, hint="Project code might read that: mount the file itself.")
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise RequestError(f"MERGEPLAN_SECRETS_DIR: `{path.name}` cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise RequestError(f"MERGEPLAN_SECRETS_DIR: `{path.name}` is not UTF-8 text.") from None
    if text.startswith(BOM):
        raise RequestError(
            f"MERGEPLAN_SECRETS_DIR: `{path.name}` begins with a byte order mark.", hint="Save it without one."
        )
