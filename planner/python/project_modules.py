"""A project's modules by name, each read when it is first needed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mergeplan.planner.python.modules import Module, module_name, read_module


@dataclass(frozen=True)
class ModuleNames:
    """A project's modules by name, with their files; what lies above modules; whether one hides one of Python's."""

    known: Mapping[str, str]
    folders: frozenset[str]
    hides: str = ""


@lru_cache(maxsize=4)
def module_names(paths: tuple[str, ...]) -> ModuleNames:
    """Made once for all models of a project: a project may have thousands of them, each in a file of its own."""
    known = {module_name(path): path for path in paths}
    parts = [name.split(".") for name in known]
    folders = frozenset(".".join(names[:end]) for names in parts for end in range(1, len(names)))
    hiding = sorted(path for name, path in known.items() if name.split(".")[0] in sys.stdlib_module_names)
    return ModuleNames(known, folders, (hiding or [""])[0])


class ProjectModules(dict[str, Module]):
    """Modules by name; a package without `__init__.py` is not a module."""

    def __init__(self, names: ModuleNames, files: Mapping[str, str]) -> None:
        super().__init__()
        self.known, self.folders, self.files = names.known, names.folders, files

    def __contains__(self, name: object) -> bool:
        return name in self.known

    def __missing__(self, name: str) -> Module:
        self[name] = read_module(self.known[name], self.files[self.known[name]])
        return self[name]

    def has_folder(self, name: str) -> bool:
        """True when modules of the project lie below this name."""
        return name in self.folders

    def is_own(self, name: str) -> bool:
        """True for a module of the project, a folder of modules, and what is named below one."""
        root = name.split(".")[0]
        return name in self or root in self or self.has_folder(root)
