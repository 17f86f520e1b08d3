"""A project's modules by name, each read on first use, and the record of the questions that code has about them.

The result of following code depends only on these questions: which names are modules of the project, what these
contain, which packages are installed. While all answers are the same, following the code again gives the same result.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.python.modules import Module, module_name, read_module


@dataclass(frozen=True)
class ModuleNames:
    """A project's modules by name, with their files; what is above modules; whether one hides one of Python's."""

    known: Mapping[str, str]
    folders: frozenset[str]
    hides: str = ""

    def describe(self, name: str) -> str:
        """Return the file of a module, '' for no module; with `/` at the end if modules are below the name."""
        return f"{self.known.get(name, '')}{'/' if name in self.folders else ''}"

    def below(self, name: str) -> list[str]:
        return [candidate for candidate in self.known if candidate.startswith(f"{name}.")]


@lru_cache(maxsize=4)
def module_names(paths: tuple[str, ...]) -> ModuleNames:
    """Return the names of these modules, cached for all models of a project, which may have thousands of them."""
    paths_by_name = {module_name(path): path for path in paths}
    parts = [name.split(".") for name in paths_by_name]
    folders = frozenset(".".join(names[:end]) for names in parts for end in range(1, len(names)))
    hiding = sorted(path for name, path in paths_by_name.items() if name.split(".")[0] in sys.stdlib_module_names)
    return ModuleNames(paths_by_name, folders, (hiding or [""])[0])


@dataclass(frozen=True)
class Questions:
    """The questions of code about a project; `every` if it may reach every file.

    They are what names are, what is below some, what files contain, and which packages there are.
    """

    names: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    every: bool = False

    def answers(self, names: ModuleNames, hashes: Mapping[str, str], versions: Callable[[str], str]) -> str:
        """Return a digest of the answers, by the hashes of the project's Python files and the versions of packages."""
        parts = [names.hides]
        for name in self.names:
            parts += (name, names.describe(name))
        for name in self.below:
            parts += ("below", name, *names.below(name))
        for path in self.files:
            parts += ("file", path, hashes.get(path, ""))
        for package in self.packages:
            parts += ("package", package, versions(package))
        if self.every:
            parts += ("every", *(part for pair in sorted(hashes.items()) for part in pair))
        return digest(*parts)


class ProjectModules(dict[str, Module]):
    """Modules by name; a package without `__init__.py` is not a module. Each question about them is recorded."""

    def __init__(self, names: ModuleNames, files: Mapping[str, str]) -> None:
        super().__init__()
        self._names, self._files = names, files
        self._asked: set[str] = set()
        self._listed: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self._asked.add(str(name))
        return name in self._names.known

    def __missing__(self, name: str) -> Module:
        path = self._names.known[name]
        self[name] = read_module(path, self._files[path])
        return self[name]

    def has_folder(self, name: str) -> bool:
        self._asked.add(name)
        return name in self._names.folders

    def below(self, name: str) -> list[str]:
        self._listed.add(name)
        return self._names.below(name)

    def is_own(self, name: str) -> bool:
        """Return True for a module of the project, a folder of modules, and a name below one."""
        root = name.split(".")[0]
        return name in self or root in self or self.has_folder(root)

    def questions(self, packages: set[str], *, every: bool = False) -> Questions:
        """Return all questions so far, with packages that were looked for elsewhere."""
        files = sorted(self._names.known[name] for name in self)
        module_questions = sorted(self._asked | self.keys())
        return Questions(
            tuple(module_questions), tuple(sorted(self._listed)), tuple(files), tuple(sorted(packages)), every
        )
