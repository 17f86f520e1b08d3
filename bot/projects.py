"""The projects of one repository: the folder of each, and the key under which the bot keeps what it knows of it. Pure.

The first folder's key is the repository's name itself, and its marks on GitHub (checks, comments) name no folder: a
second project changes nothing of the first. The key of another is `owner/name~ads~daily` for the folder `ads/daily`:
GitHub lets no repository's name hold a `~`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from mergeplan.planner.errors import RequestError

SEPARATOR = "~"
FOLDER = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
ROOT = "."


def read_folders(text: str) -> tuple[str, ...]:
    """Return the folders of a comma-separated list; raise ValueError for one outside, or unfit for a key."""
    folders = tuple(PurePosixPath(entry.strip() or ROOT).as_posix() for entry in text.split(","))
    if any(entry.startswith("/") or ".." in entry.split("/") for entry in folders):
        raise ValueError("must be a folder inside the repository")
    if len(set(folders)) < len(folders):
        raise ValueError("names a folder twice")
    if ROOT in folders[1:]:
        raise ValueError("names the repository's own folder, `.`, which must come first")
    if wrong := next((entry for entry in folders if len(folders) > 1 and not FOLDER.fullmatch(entry)), ""):
        raise ValueError(f"has a folder `{wrong}` with other than letters, digits, `.`, `_`, `-` and `/` in its name")
    return folders


def project_keys(repository: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of a repository's projects, in the order of their folders.

    >>> project_keys("ann/shop", ["dbt", "ads/daily"])
    ('ann/shop', 'ann/shop~ads~daily')
    """
    return (repository, *(SEPARATOR.join((repository, *folder.split("/"))) for folder in folders[1:]))


def repository_of(key: str) -> str:
    return key.partition(SEPARATOR)[0]


def owner_of(repository: str) -> str:
    return repository.partition("/")[0]


def label_of(key: str) -> str:
    """Return what a project's marks on GitHub name: its folder, or '' for the first project.

    >>> label_of("ann/shop~ads~daily"), label_of("ann/shop")
    ('ads/daily', '')
    """
    return key.partition(SEPARATOR)[2].replace(SEPARATOR, "/")


def folder_of(key: str, folders: Sequence[str]) -> str:
    return label_of(key) or folders[0]


def title_of(key: str) -> str:
    """Return a key as people read it: `ann/shop (ads/daily)`."""
    return add_label(repository_of(key), label_of(key))


def add_label(name: str, label: str) -> str:
    """Return a name on GitHub, distinct from that of the repository's other projects."""
    return f"{name} ({label})" if label else name


def check_repository(name: str) -> str:
    """Return a repository's name in lower case; raise ValueError for other text.

    >>> check_repository("Acme/core")
    'acme/core'
    """
    if not re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", name):
        raise ValueError("must be a repository as `owner/name`")
    return name.lower()


def keep_their_prods(prods: Mapping[str, str], folders: Sequence[str]) -> None:
    """Raise RequestError if the order of the folders would give one project the prod of another.

    `prods`: by the key of each prod that was built, the folder that it was promoted from ('': not known).
    """
    for key, folder in prods.items():
        if not label_of(key) and folder in folders[1:]:
            raise another_project(folder, folders[0])
        if label_of(key) == folders[0]:
            raise RequestError(
                f"`{folders[0]}` comes first in MERGEPLAN_PROJECT_PATH, and prod of {title_of(key)} was built "
                "while it was not the first.",
                hint="Put the folder that was first there again, also where its project is gone.",
            )


def another_project(folder: str, second_folder: str) -> RequestError:
    """Return the error for a prod that was promoted from one folder, still a project, when another folder is given."""
    return RequestError(
        f"Prod was promoted from the project in `{folder}`, and MERGEPLAN_PROJECT_PATH gives that in `{second_folder}` "
        f"for it: every table of prod would be removed.",
        hint=f"Put `{folder}` first in MERGEPLAN_PROJECT_PATH. If its project moved, merge the removal of its "
        "configuration there.",
    )


def inside(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    """Return the paths of a repository that are in a folder, relative to it.

    >>> inside(["README.md", "dbt/models/a.sql"], "dbt")
    ('models/a.sql',)
    """
    prefix = "" if folder in ("", ROOT) else folder.strip("/") + "/"
    return tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
