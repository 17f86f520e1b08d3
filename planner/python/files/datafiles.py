"""The data files of a project, their names and contents, for the code that may read them."""

import hashlib
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.python.files.filereads import FileNames, FileReads

# Files and folders of tools in a project's folder, which do not belong to the project.
_LEFT_OUT = frozenset(
    """__pycache__ node_modules spark-warehouse metastore_db derby.log .git .hg .svn .mergeplan .cache .venv .tox .nox
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .ipynb_checkpoints .idea .vscode .DS_Store""".split()
)


class DataFiles:
    """The files below a project's root; each is read when its content is first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hashes: dict[str, str] = {}
        self._digests: dict[frozenset[str], str] = {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths from the root, sorted; without virtual environments and the files of mergeplan and other tools."""
        home = os.environ.get("MERGEPLAN_HOME")
        home_folder = Path(home).resolve() if home else None
        files: list[str] = []
        folders = [(self.root, frozenset((self.root.resolve(),)))]
        while folders:
            folder, above = folders.pop()
            for entry in _list_entries(folder):
                path = folder / entry.name
                if entry.name in _LEFT_OUT or path == home_folder:
                    continue
                if not entry.is_dir():
                    files.append(path.relative_to(self.root).as_posix())
                elif (real := path.resolve()) not in above and self._is_inside(real):
                    folders.append((path, above | {real}))
        return tuple(sorted(files))

    def _is_inside(self, folder: Path) -> bool:
        """Return True for a folder of the project, also by a link, that is no virtual environment."""
        return folder.is_relative_to(self.root.resolve()) and not (folder / "pyvenv.cfg").exists()

    @cached_property
    def _file_names(self) -> FileNames:
        return FileNames(self.paths)

    def digest(self, reads: FileReads, texts: Iterable[str]) -> str:
        """Return a digest of the files, with names, that code with these `texts` may read; '' if there is none."""
        named = frozenset(self.paths if reads.unknown else reads.select_files(self._file_names, texts))
        if named and named not in self._digests:
            parts = (part for path in sorted(named) for part in (path, self._hash_file(path)))
            self._digests[named] = digest(*parts)
        return self._digests[named] if named else ""

    def _hash_file(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = _hash_content(self.root / path)
        return self._hashes[path]


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # its files cannot be read by the code either
        return []


def _hash_content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.errno}"
