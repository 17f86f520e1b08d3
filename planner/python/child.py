"""The child's main: a project's Python runs here, without access to mergeplan's state and credentials.

Requests and replies are lines of JSON, over two pipes that the project's code does not see: standard input is empty,
and what the code prints goes to standard error. When the one who started it goes, it goes too.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import os
import queue
import re
import signal
import sys
import threading
import traceback
import types
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import IO, Any

from mergeplan.planner.python import rules, shims
from mergeplan.planner.python.evaluator import Evaluator, UnknownColumns, call, sql_of
from mergeplan.planner.python.executing import Context, Execution, first_line, intervals_of, readiness
from mergeplan.planner.python.modules import module_name

GRACE = 2.0  # seconds that ending may take


class Files(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The project's modules, from the texts that the planner has read: what was planned is what runs."""

    def __init__(self, root: str, texts: Mapping[str, str]) -> None:
        self.root = root
        self.paths = {module_name(path): path for path in texts}
        self.texts = texts
        self.folders = {".".join(name.split(".")[:end]) for name in self.paths for end in range(1, name.count(".") + 1)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in self.paths:
            place = os.path.join(self.root, self.paths[fullname])
            package = place.endswith("/__init__.py")
            spec = importlib.machinery.ModuleSpec(fullname, self, origin=place, is_package=package)
            spec.has_location = True
            if package:
                spec.submodule_search_locations = [os.path.dirname(place)]
            return spec
        if fullname in self.folders:
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [os.path.join(self.root, *fullname.split("."))]
            return spec
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        path = self.paths[module.__name__]
        exec(compile(self.texts[path], os.path.join(self.root, path), "exec"), module.__dict__)  # noqa: S102

    def where(self, error: BaseException) -> tuple[str, int]:
        """The file of the project and the line of the error: the innermost one; '' if no file of the project is
        involved."""
        if isinstance(error, SyntaxError) and (name := self._name(error.filename or "")):
            return name, error.lineno or 1
        place = ("", 0)
        for frame, line in traceback.walk_tb(error.__traceback__):
            if name := self._name(frame.f_code.co_filename):
                place = (name, line)
        return place

    def relative(self, filename: str) -> str:
        """A file's path from the project's root."""
        return self._name(filename) or filename

    def _name(self, filename: str) -> str:
        name = os.path.relpath(filename, self.root) if filename.startswith(self.root + os.sep) else ""
        return name if name in self.texts else ""


class Answering:
    """What the child does for each request; `files` are set when the project is opened."""

    def __init__(self) -> None:
        self.files: Files | None = None
        self.execution: Execution | None = None

    def answer(self, request: Mapping[str, Any]) -> Any:
        """The answer to one request, as JSON data."""
        match request["op"]:
            case "open":
                self.files = Files(request["root"], request["files"])
                sys.meta_path.insert(0, self.files)
                sys.path.insert(0, request["root"])
                sys.path += [request["packages"]] if request["packages"] else []  # last: mergeplan's own libraries win
                return None
            case "load":
                return self._load(request)
            case "macro":
                macros = {name: macro.function for name, macro in shims.REGISTRY.macros.items()}
                return call(macros[request["name"]], Evaluator(request, macros), request["args"], request["kwargs"])
            case "sql":
                macros = {name: macro.function for name, macro in shims.REGISTRY.macros.items()}
                evaluator = Evaluator(request, macros)
                return list(sql_of(self._entry(request)(evaluator), request["dialect"]))
            case "execute":
                self.execution = self.execution or Execution(request["spark"])
                return self.execution.run(self._entry(request), request)
            case "signal":
                return self._signal(request)
            case "lint":
                return rules.check(request)
        raise ValueError(f"{request['op']}: unknown operation")

    def _load(self, request: Mapping[str, Any]) -> Any:
        """Import files one by one; what they register, and the errors of those that cannot be imported."""
        assert self.files is not None
        errors = []
        for path in request["paths"]:
            try:
                importlib.import_module(module_name(path))
            except BaseException as error:  # a project's file may raise, or exit, as it likes
                errors.append({**error_data(error, self.files), "file": path})
        registry = shims.REGISTRY
        return {
            "macros": sorted(registry.macros),
            "signals": [self._describe(declaration) for declaration in registry.signals.values()],
            "models": [self._model(model) for model in registry.models],
            "errors": errors,
        }

    def _describe(self, each: shims.Decorated) -> dict[str, Any]:
        assert self.files is not None
        return {"name": each.name, "path": self.files.relative(each.path), "line": each.line}

    def _model(self, each: shims.Decorated) -> dict[str, Any]:
        return {**self._describe(each), "arguments": {key: plain(value) for key, value in each.arguments.items()}}

    def _entry(self, request: Mapping[str, Any]) -> Any:
        return getattr(importlib.import_module(module_name(request["path"])), request["entrypoint"])

    def _signal(self, request: Mapping[str, Any]) -> Any:
        batch = intervals_of(request["intervals"])
        context = Context(request, self._open_execution(request["spark"]))
        function = shims.REGISTRY.signals[request["name"]].function
        kwargs = {name: Evaluator({}, {}).eval_expression(value) for name, value in request["kwargs"].items()}
        return readiness(function, batch, context, kwargs)

    def _open_execution(self, spark: Mapping[str, Any] | None) -> Execution:
        self.execution = self.execution or Execution(spark)
        return self.execution


def plain(value: Any) -> Any:
    """A decorator's argument as JSON data; SQL expressions, kinds and dates in a form of their own."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(element) for element in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, datetime) or hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, shims.ModelKind):
        return {"name": value.name, **{key: plain(element) for key, element in value.settings.items()}}
    if isinstance(value, shims.TimeColumn):
        return {"column": plain(value.column), **({"format": value.format} if value.format else {})}
    if hasattr(value, "sql"):
        return {"$sql": value.sql(dialect="spark")}
    raise TypeError(f"`{type(value).__name__}` is not a value that @model accepts")


TABLE = re.compile(r"\w+\.\w+")


def error_data(error: BaseException, files: Files) -> dict[str, Any]:
    """An error as data: its message, and its place in the project."""
    path, line = files.where(error)
    if isinstance(error, SyntaxError):
        message = f"This is not Python: {error.msg}"
    elif isinstance(error, SystemExit):
        message = f"It exited Python: SystemExit: {error.code}"
    else:
        message = f"{type(error).__name__}: {first_line(error)}".rstrip(": ")
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "sqlmesh":
        message = (
            f"{message.partition(' (')[0]}. This `sqlmesh` is mergeplan's own, with what models, macros and signals"
        )
        message += " need: remove the import"
    elif isinstance(error, ModuleNotFoundError):
        message += ". Install it in mergeplan's environment, and name it in requirements.txt"
    message = message.encode("utf-8", "replace").decode()  # an incomplete character is not JSON
    data = {"message": message, "path": path, "line": line, "called": isinstance(error, TypeError) and not path}
    wants = error.wants if isinstance(error, UnknownColumns) else ""
    return {**data, "wants": wants} if TABLE.fullmatch(wants) else data


def serve(asking: IO[str], answering: IO[str]) -> None:
    """Handle requests until the input ends."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    work = Answering()

    def read() -> None:
        for line in asking:
            lines.put(line)
        # the planner has ended, or wants this to end; do not wait for a Spark that does not respond
        late = threading.Timer(GRACE, _end)
        late.daemon = True
        late.start()
        if work.execution is not None:
            work.execution.interrupt()
        _end()

    threading.Thread(target=read, daemon=True).start()
    while True:
        request = json.loads(lines.get())
        try:
            answer = {"ok": work.answer(request)}
            text = json.dumps(answer)
        except BaseException as error:
            files = work.files or Files("/", {})
            text = json.dumps({"error": error_data(error, files)})
        sys.stdout.flush()
        sys.stderr.flush()
        answering.write(text + "\n")
        answering.flush()


@cache
def _group() -> int:
    return os.getpgrp()


def _end() -> None:
    """End this process and those that the project's code started."""
    if _group() == os.getpid():
        os.killpg(_group(), signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Take the two pipes away from standard input and output, and serve over them."""
    asking, answering = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    _group()
    shims.install()
    rules.install()
    serve(os.fdopen(asking, encoding="utf-8"), os.fdopen(answering, "w", encoding="utf-8"))


if __name__ == "__main__":
    main()
