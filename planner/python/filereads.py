"""Which files of a project its code may read: by the strings in it, and by whether a name is known only at run time.

A file is named by a text of the code: its path or the end of it, a folder on the way, a pattern. Where code opens what
no text of it names, or lists a folder, it may read any file. More is counted than need be, never less.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

from planner.python.modules import Import, Module

# Called with a path, as a function or as a method of something else than a path.
OPENING = frozenset(
    """open load loadtxt genfromtxt fromfile memmap from_file from_csv from_json connect ParquetFile ParquetDataset
    ZipFile load_workbook TarFile textFile wholeTextFiles binaryFiles open_dataset open_code fdopen""".split()
)
# Methods of a path, or of a reader of Spark's.
OF_A_PATH = frozenset("read_text read_bytes open".split())
OF_A_READER = frozenset("csv json parquet orc text load xml".split())
# The files that they find are not named in the code.
LISTING = frozenset("iterdir glob iglob rglob listdir scandir walk fwalk system popen".split())
SEARCHING = frozenset("subprocess shutil fileinput sqlite3 duckdb tarfile mmap glob pty posix".split())  # modules
_NO_FILES = ("read_sql", "read_gbq", "read_clipboard")
_NOT_OURS = frozenset(("json", "pickle", "yaml", "tomllib", "toml", "marshal"))  # their `load` takes what was opened
_SAME_PLACE = frozenset("parent parents resolve absolute as_posix expanduser with_name with_suffix joinpath".split())
_OF_PATHS = frozenset(
    """Path PurePath PosixPath PurePosixPath str fspath join dirname abspath realpath normpath basename
    open StringIO BytesIO""".split()  # what these open is looked at where they are called
)


@dataclass
class FileReads:
    """What the analysed code says about files: its strings, whether it opens any, and whether one has an unknown
    name."""

    texts: set[str] = field(default_factory=set)
    opens: bool = False
    unclear: bool = False

    def look(self, node: ast.AST, module: Module) -> None:
        """Analyse a piece of code of a module."""
        bound = _bindings(node) if not isinstance(node, ast.Module) else {}
        around = _Bindings({**_of_module(module.tree), **bound}, module.imports)
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                self.texts.add(each.value)
            elif isinstance(each, ast.Call):
                self._call(each, around)
            elif isinstance(each, ast.Attribute) and each.attr in LISTING:
                self.opens = self.unclear = True
            elif isinstance(each, ast.ImportFrom | ast.Import):
                names = {alias.name for alias in each.names}
                listed = not names.isdisjoint(LISTING) and isinstance(each, ast.ImportFrom)
                self.opens, self.unclear = self.opens or listed, self.unclear or listed
            elif isinstance(each, ast.Name) and self._searches(each, node, around):
                self.opens = self.unclear = True

    @staticmethod
    def _searches(name: ast.Name, node: ast.AST, names: _Bindings) -> bool:
        """True for the name of a function that finds files by itself, and for `open` if it is passed on."""
        given = names.imports.get(name.id, ())
        if any(each.module.split(".")[0] in SEARCHING or each.name in LISTING for each in given):
            return True
        return names.called(name) in OPENING and bool(given or name.id == "open") and not _is_called(name, node)

    def _call(self, call: ast.Call, names: _Bindings) -> None:
        called = names.called(call.func)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        arguments = [
            *call.args,
            *(each.value for each in call.keywords if each.arg in (None, "path", "file", "source")),
        ]
        if called in OF_A_PATH and receiver is not None and not _is_module(receiver):
            self._opened(receiver, names)
            return
        reads = called in OPENING or (called.startswith("read_") and not called.startswith(_NO_FILES))
        reads = reads or (called in OF_A_READER and receiver is not None and "read" in _attributes(receiver))
        if not reads or (called == "load" and isinstance(receiver, ast.Name) and receiver.id in _NOT_OURS):
            return
        for path in arguments[:1] or [call]:
            self._opened(path, names)

    def _opened(self, path: ast.expr, names: _Bindings) -> None:
        self.opens = True
        self.unclear = self.unclear or not names.is_written(path)

    def named(self, files: FileNames, more: Iterable[str] = ()) -> set[str]:
        """Those of the files that the code may read; `more` are texts that it is given."""
        texts = {text.strip() for text in (*self.texts, *more)} - {""}
        wholes = {text.replace("\\", "/").removeprefix("./").rstrip("/") for text in texts}
        wholes |= {PurePosixPath(text).as_posix() for text in wholes if ".." not in text}
        wholes |= {text.rsplit("../", 1)[1] for text in wholes if "../" in text}
        folders = {text for text in wholes if self.opens} | {text.rstrip("/") for text in texts if text.endswith("/")}
        patterns = (text for text in texts if any(mark in text for mark in "*?["))
        kinds = (text for text in texts if text.startswith(".") and text.count(".") == 1)
        absolute = (text.split("/") for text in wholes if text.startswith("/"))
        found = {path for text in wholes for path in files.ends.get(text, ())}
        found |= {path for text in folders for path in files.below.get(text, ())}
        found |= {path for text in kinds for path in files.kinds.get(text, ())}
        found |= {path for text in patterns for name in files.like(text) for path in files.ends[name]}
        return found | (files.paths & {"/".join(parts[at:]) for parts in absolute for at in range(1, len(parts))})


class FileNames:
    """The files of a project (paths from the root) by what a text of code may say of them.

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
                above[folder] = sorted({end for each in _folders(path) for end in _ends(each)})
            for end in _ends(path):
                self.ends.setdefault(end, []).append(path)
            for end in above[folder]:
                self.below.setdefault(end, []).append(path)
            if "." in path:
                self.kinds.setdefault(path[path.rfind(".") :], []).append(path)
        self._sorted = sorted(self.ends)

    def like(self, pattern: str) -> Iterator[str]:
        """The ends of paths that match a pattern of a shell. Queries look like patterns too: what such a text begins
        with leaves no name to compare."""
        start = re.split(r"[*?[]", pattern, maxsplit=1)[0]
        for name in islice(self._sorted, bisect_left(self._sorted, start), None):
            if not name.startswith(start):
                return
            if fnmatchcase(name, pattern):
                yield name


@dataclass(frozen=True)
class _Bindings:
    """What the names of a piece of code are bound to; None for one that is not bound to a value."""

    bound: Mapping[str, list[ast.expr | None]]
    imports: Mapping[str, tuple[Import, ...]]

    def called(self, function: ast.expr) -> str:
        """The original name of a called function, whatever name it is imported as."""
        if isinstance(function, ast.Attribute):
            return function.attr
        name = function.id if isinstance(function, ast.Name) else ""
        return next((each.name for each in self.imports.get(name, ()) if each.name), name)

    def is_written(self, value: ast.expr, depth: int = 0) -> bool:
        """True when a path is made of texts of the code alone, joined as paths are."""
        if depth > 20:
            return False
        match value:
            case ast.Constant():
                return True
            case ast.Name(id="__file__"):
                return True
            case ast.Name(id=name):
                given = self.bound.get(name, [])
                return bool(given) and all(each is not None and self.is_written(each, depth + 1) for each in given)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.is_written(left, depth + 1) and self.is_written(right, depth + 1)
            case ast.Attribute(value=inner, attr=attr) if attr in _SAME_PLACE:
                return self.is_written(inner, depth + 1)
            case ast.Subscript(value=ast.Attribute(attr="parents") as inner):
                return self.is_written(inner, depth + 1)
            case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=args) if attr in _SAME_PLACE:
                return all(self.is_written(each, depth + 1) for each in (inner, *args))
            case ast.Call(func=func, args=args) if args:
                return self.called(func) in _OF_PATHS and all(self.is_written(each, depth + 1) for each in args)
        return False


@lru_cache(maxsize=4096)  # trees are compared by identity, and never changed
def _of_module(tree: ast.Module) -> Mapping[str, list[ast.expr | None]]:
    return _bindings(tree, deep=False)


def _bindings(node: ast.AST, *, deep: bool = True) -> dict[str, list[ast.expr | None]]:
    """Name -> what each statement binds it to; of a module only what stands outside of its functions."""
    found: dict[str, list[ast.expr | None]] = {}
    for each in ast.walk(node) if deep else ast.iter_child_nodes(node):
        match each:
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                found.setdefault(name, []).append(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case ast.arg(arg=name):
                found.setdefault(name, []).append(None)
            case ast.Name(id=name, ctx=ast.Store()):
                found.setdefault(name, [])
    stored = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    for name, values in found.items():  # a loop, a `with`, an unpacking, or a branch of the module binds it too
        if len(stored) and stored.count(name) != len([value for value in values if value is not None]):
            values.append(None)
    return found


def _is_called(name: ast.Name, node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) and each.func is name for each in ast.walk(node))


def _is_module(receiver: ast.expr) -> bool:
    """True for `io.open`, `codecs.open`, `gzip.open`: an unqualified name in lower case of a function that opens its
    argument."""
    return isinstance(receiver, ast.Name) and receiver.id in ("io", "codecs", "gzip", "bz2", "lzma", "os", "zipfile")


def _attributes(node: ast.expr) -> list[str]:
    """The names of a chain of attributes and calls."""
    found = []
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
            node = node.value
        else:
            node = node.func
    return found


def _ends(path: str) -> set[str]:
    """`a/b/c` -> `a/b/c`, `b/c`, `c`"""
    parts = path.split("/")
    return {"/".join(parts[index:]) for index in range(len(parts))}


def _folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: index + 1]) for index in range(len(parts))]
