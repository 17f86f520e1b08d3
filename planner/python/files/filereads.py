"""The files of a project that its code may read: by the strings in it, and by whether it opens files it does not name.

A file is named by a text of the code: its path or the end of it, a folder on the way, a pattern. Where code may open a
file that no text of it names, it may read any file. The result may include too many files, never too few.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import PurePosixPath

from mergeplan.planner.python.files.code_names import Code
from mergeplan.planner.python.files.file_access import FileAccess, file_accesses
from mergeplan.planner.python.modules import Module
from mergeplan.planner.python.project_modules import ProjectModules


@dataclass
class FileReads:
    """The file names in the analysed code: its strings, whether it opens files, and where it may open any file."""

    texts: set[str] = field(default_factory=set)
    opens: bool = False
    unknown: list[FileAccess] = field(default_factory=list)

    def look(self, node: Code, module: Module, modules: ProjectModules) -> None:
        self.texts |= {
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        accesses = file_accesses(node, module, modules)
        self.texts |= accesses.ends
        self.opens = self.opens or accesses.opens
        self.unknown += accesses.unknown

    def select_files(self, files: FileNames, more: Iterable[str] = ()) -> set[str]:
        """Return those of the files that the code may read; `more` are texts that it gets."""
        passed = {text.strip() for text in more}
        if self.opens and any(text.rstrip("/").rpartition("/")[2] in (".", "..") for text in passed):
            return set(files.paths)
        texts = ({text.strip() for text in self.texts} | passed) - {""}
        wholes = {text.replace("\\", "/").removeprefix("./").rstrip("/") for text in texts}
        wholes |= {PurePosixPath(text).as_posix() for text in wholes if ".." not in text}
        wholes |= {text.rsplit("../", 1)[1] for text in wholes if "../" in text}
        absolute = [text.split("/") for text in wholes if text.startswith("/")]
        wholes |= {"/".join(parts[at:]) for parts in absolute for at in range(1, len(parts))}
        folders = {text for text in wholes if self.opens} | {text.rstrip("/") for text in texts if text.endswith("/")}
        kinds = (text for text in texts if text.startswith(".") and text.count(".") == 1)
        matches = {path for text in wholes for path in files.ends.get(text, ())}
        matches |= {path for text in folders for path in files.below.get(text, ())}
        matches |= {path for text in kinds for path in files.kinds.get(text, ())}
        patterns = (pattern for text in wholes for pattern in _shell_patterns(text))
        return matches | {path for text in patterns for name in files.like(text) for path in files.ends[name]}


class FileNames:
    """The files of a project (paths from the root), indexed by the texts of code that may name them.

    `ends`: by path and each end of it; `below`: by each end of a folder's path above them; `kinds`: by suffix.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        self.ends: dict[str, list[str]] = {}
        self.below: dict[str, list[str]] = {}
        self.kinds: dict[str, list[str]] = {}
        above: dict[str, list[str]] = {}
        for path in self.paths:
            folder, _, _ = path.rpartition("/")
            if folder not in above:
                above[folder] = sorted({end for parent in _parent_folders(path) for end in _path_ends(parent)})
            for end in _path_ends(path):
                self.ends.setdefault(end, []).append(path)
            for end in above[folder]:
                self.below.setdefault(end, []).append(path)
            if "." in path:
                self.kinds.setdefault(path[path.rfind(".") :], []).append(path)
        self._sorted = sorted(self.ends)

    def like(self, pattern: str) -> Iterator[str]:
        """Yield the ends of paths that match a pattern of a shell.

        Queries look like patterns too: the beginning of such a text matches no name.
        """
        start = re.split(r"[*?[]", pattern, maxsplit=1)[0]
        for name in islice(self._sorted, bisect_left(self._sorted, start), None):
            if not name.startswith(start):
                return
            if fnmatchcase(name, pattern):
                yield name


def _shell_patterns(text: str) -> Iterator[str]:
    """Yield the patterns of file names that a text may mean.

    `**/` also means no folder, and a folder means what is below it.
    """
    if any(mark in text for mark in "*?["):
        bare = text.replace("**/", "")
        yield from (text, f"{text}/*", bare, f"{bare}/*")


def _path_ends(path: str) -> set[str]:
    """Return the ends of a path: `a/b/c` -> `a/b/c`, `b/c`, `c`."""
    parts = path.split("/")
    return {"/".join(parts[index:]) for index in range(len(parts))}


def _parent_folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: index + 1]) for index in range(len(parts))]
