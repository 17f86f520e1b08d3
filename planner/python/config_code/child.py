"""The child's main for a config.py: it runs here, where no value of an environment variable is available.

Only the result of the file leaves this process, as data that the planner checks like a config.yaml.
"""

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import PathFinder, SourceFileLoader
from types import BuiltinMethodType, FrameType, ModuleType
from typing import Any

from mergeplan.planner.python.config_code import rewriting
from mergeplan.planner.python.config_code.environment import Environment, guard_environment
from mergeplan.planner.python.config_code.recording import Recording, note_lines, record_expression, variables_data
from mergeplan.planner.python.config_code.references import (
    Number,
    References,
    Text,
    Undecided,
    is_same,
    is_within,
    plain_value,
    why_unknown,
)
from mergeplan.planner.python.config_code.stand_ins import Recorded, Sqlmesh, Unknown, modules_of_ours
from mergeplan.planner.python.serving import serve_pipes

FILE, NAME = "config.py", "config"
SECONDS, MEMORY, FILE_SIZE = 30, 1 << 30, 64 << 20  # of the processor's time; bytes
OURS = __name__.rpartition(".")[0]
PASSING: tuple[Any, ...] = (  # functions that pass on what they are given, or ask it as Python's own code would
    print, isinstance, type, str, repr, format, list, tuple, dict, set, frozenset, bool, len, getattr, hasattr, setattr,
    sorted, enumerate, zip, map, filter, any, all, min, max, sum, id, callable, iter, next, abs, round, reversed,
)  # fmt: skip
JOINING = ("format", "join", "replace")  # methods of texts whose result keeps the marks


class ConfigCode(importlib.abc.MetaPathFinder):
    """One project's configuration while it runs: the finder of the project's modules, and what they see of Python."""

    def __init__(self, root: str, references: References) -> None:
        self.root = root
        self.references = references
        self.caught: dict[str, frozenset[int]] = {}  # by file: lines within a `try`
        self.files = set[str]()  # of the project, opened
        self.builtins = {
            **vars(builtins),
            "__import__": self._import_module,
            rewriting.SEE: lambda value, line, lines: record_expression(value, line, lines, self.references),
            rewriting.LINES: note_lines,
            rewriting.CALL: partial(call_function, references, self.caught),
            rewriting.SAME: is_same,
            rewriting.WITHIN: is_within,
        }
        environment = Environment(self.references, self._in_try)
        os_module, path_module = ModuleType("os"), ModuleType("os.path")
        path_module.__dict__.update(vars(os.path), expandvars=self._refuse_expansion)
        os_module.__dict__.update(vars(os), environ=environment, getenv=environment.get, path=path_module)
        for name in ("environb", "getenvb"):
            os_module.__dict__.pop(name, None)
        self.os = os_module

    def run(self, text: str) -> dict[str, Any]:
        """Return the configuration of config.py as data; raise its own errors, or Undecided."""
        module = ModuleType(NAME)
        module.__file__ = os.path.join(self.root, FILE)
        sys.modules[NAME] = module
        self.execute(text, module.__file__, module.__dict__)
        if self.references.refusal:
            raise self.references.refusal
        config = module.__dict__.get(NAME)
        if NAME not in module.__dict__:
            raise Undecided(f"config.py defines no `{NAME}`. Write `{NAME} = Config(...)`.", 1)
        if isinstance(config, Unknown) or not isinstance(config, Recorded) or config.stands_for != "Config":
            raise Undecided(f"`{NAME}` is not made by SQLMesh's `Config(...)`.", 1)
        if not config.is_exact:
            raise Undecided(f"`{type(config).__name__}`, a class of this project, decides the configuration.", 1)
        recording = Recording(self.references, self.root, os.path.expanduser("~"))
        value = recording.record(config, (), 0)
        variables = variables_data(self.references.variables)
        named = {"value": value, "lines": recording.lines, "unclear": recording.unclear, "variables": variables}
        return {**named, "files": sorted(self.files)}

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record the files of the project that are opened (an audit hook)."""
        if event == "open" and isinstance(arguments[0], str):
            path = os.path.realpath(os.path.join(self.root, arguments[0]))
            if path.startswith(self.root + os.sep):
                self.files.add(os.path.relpath(path, self.root))

    def execute(self, text: str, path: str, names: dict[str, Any]) -> None:
        tree, self.caught[path] = rewriting.rewrite_file(text, path)
        names["__builtins__"] = self.builtins
        exec(compile(tree, path, "exec"), names)  # noqa: S102  # what this process is for

    def locate(self, error: BaseException) -> tuple[str, int]:
        """Return the file of the project and the line of an error; line 1 of config.py if no file is involved."""
        if isinstance(error, Undecided) and error.line:
            return FILE, error.line
        if isinstance(error, SyntaxError) and (name := self._relative_path(error.filename or "")):
            return name, error.lineno or 1
        place = (FILE, 1)
        for frame, line in traceback.walk_tb(error.__traceback__):
            if name := self._relative_path(frame.f_code.co_filename):
                place = name, line
        return place

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the project's own module of a name; None for any other module."""
        spec = PathFinder.find_spec(fullname, path if path is not None else [self.root, *sys.path], target)
        if spec is not None and self._relative_path(spec.origin or "") and isinstance(spec.loader, SourceFileLoader):
            spec.loader = ProjectLoader(spec.name, spec.origin or "", self)
            return spec
        return spec if spec is not None and spec.origin is None else None

    def _relative_path(self, path: str) -> str:
        return os.path.relpath(path, self.root) if path.startswith(self.root + os.sep) else ""

    def _in_try(self) -> bool:
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code.co_filename not in self.caught:
            frame = frame.f_back
        return frame is not None and frame.f_lineno in self.caught[frame.f_code.co_filename]

    def _import_module(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        try:
            module = builtins.__import__(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as error:
            if level or error.name != name.partition(".")[0] or "*" in (fromlist or ()) or self._in_try():
                raise
            return Unknown(f"`{name}`, which is not installed,", self.references)
        if level or name.partition(".")[0] != "os":
            return module
        return self.os.path if name == "os.path" and fromlist else self.os

    def _refuse_expansion(self, path: Any) -> Any:
        self.references.refuse("`os.path.expandvars` decides the configuration here: use `os.environ`.")


class ProjectLoader(SourceFileLoader):
    """A loader that runs a module of the project like config.py itself, and ignores compiled files."""

    def __init__(self, name: str, path: str, code: ConfigCode) -> None:
        super().__init__(name, path)
        self._code = code

    def exec_module(self, module: ModuleType) -> None:
        text = importlib.util.decode_source(self.get_data(self.path))
        self._code.execute(text, self.path, module.__dict__)


@contextmanager
def project_imports(code: ConfigCode, packages: str = "") -> Iterator[None]:
    """Let the project's modules, and SQLMesh's, be found within the context as a config.py finds them."""
    former_imports = list(sys.meta_path), list(sys.path), dict(sys.modules)
    for name in modules_of_ours():
        del sys.modules[name]
    sys.meta_path[:0] = [Sqlmesh(code.references), code]
    sys.path += [packages] if packages else []
    try:
        yield
    finally:
        sys.meta_path[:], sys.path[:] = former_imports[:2]
        for name in sys.modules.keys() - former_imports[2].keys():
            del sys.modules[name]
        sys.modules.update(former_imports[2])


class Answering:
    """The child's answers to requests: it runs one config.py."""

    def __init__(self) -> None:
        self._code: ConfigCode | None = None
        self._packages = ""
        self._root = ""

    def answer(self, request: Mapping[str, Any]) -> Any:
        if request["op"] == "open":
            self._root, self._packages = request["root"], request["packages"]
            return None
        references = References(frozenset(request["filled"]), request["values"])
        self._code = ConfigCode(self._root, references)
        limit_itself(references)
        guard_environment(references)
        sys.addaudithook(self._code.note)
        with project_imports(self._code, self._packages):
            return self._code.run(request["text"])

    def locate(self, error: BaseException) -> tuple[str, int]:
        return self._code.locate(error) if self._code else ("", 0)

    def interrupt(self) -> None:
        """Do nothing: nothing continues after this process."""


def limit_itself(references: References) -> None:
    """Limit this process's memory, time and files, regardless of its inherited limits."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        references.refuse(f"It takes more than {SECONDS} seconds of the processor's time.")

    signal.signal(signal.SIGXCPU, stop)
    limits = {resource.RLIMIT_DATA: MEMORY, resource.RLIMIT_FSIZE: FILE_SIZE, resource.RLIMIT_CORE: 0}
    for kind, maximum in {**limits, resource.RLIMIT_CPU: SECONDS}.items():
        hard = resource.getrlimit(kind)[1]
        top = maximum + (2 if kind == resource.RLIMIT_CPU else 0)
        top = top if hard == resource.RLIM_INFINITY else min(top, hard)
        resource.setrlimit(kind, (min(maximum, top), top))


def main() -> None:
    serve_pipes(Answering())


if __name__ == "__main__":
    main()


def call_function(references: References, files: Container[str], function: Any, *args: Any, **keywords: Any) -> Any:
    """Return the result of a call; `files` are the project's. Code in C reads characters: a reference's are marks."""
    values = (*args, *keywords.values())
    references_in = any(isinstance(value, Text | Number | Unknown) for value in values)
    if not references_in or _can_take_references(function, files):
        return function(*args, **keywords)
    if function in (int, float) and len(args) == 1 and not keywords and isinstance(args[0], Text):
        text = args[0].filtered(function.__name__)
        if text is not None:
            return Number(text)
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    if reason := next(filter(None, map(why_unknown, values)), ""):
        return Unknown.because(reason, references)
    return function(*map(plain_value, args), **{name: plain_value(value) for name, value in keywords.items()})


def _can_take_references(function: Callable[..., Any], files: Container[str]) -> bool:
    """Return True for the project's own code, stand-ins, and functions that only pass on their arguments."""
    if any(function is passing for passing in PASSING):
        return True
    owner = getattr(function, "__self__", None)
    if isinstance(function, BuiltinMethodType) and isinstance(owner, list | tuple | dict | set | frozenset):
        return True
    if type(owner) is str:
        return function.__name__ in JOINING
    module = getattr(function, "__module__", None) or ""
    if any(getattr(part, "__module__", "").startswith(OURS) for part in (type(function), type(owner))):
        return True
    return module.startswith(OURS) or getattr(sys.modules.get(module), "__file__", None) in files
