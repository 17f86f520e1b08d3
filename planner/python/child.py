"""The child's main: it runs a project's Python without mergeplan's state and credentials, and ends with its parent."""

import importlib
import importlib.machinery
import os
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from mergeplan.planner.python import rules, shims
from mergeplan.planner.python.evaluator import Evaluator
from mergeplan.planner.python.executing import Context, Execution, check_readiness, intervals_of
from mergeplan.planner.python.modules import module_name
from mergeplan.planner.python.serving import error_data, serve_pipes

LIBRARY = "sqlglot"  # imported where it is first used, which is later than the project is opened


class Files:
    """The finder and loader of the project's modules, from the texts that the planner has read.

    So the planned code is the code that runs. It derives from none of importlib's classes, which would import a dozen
    modules.
    """

    def __init__(self, root: str, texts: Mapping[str, str]) -> None:
        self.root = root
        self.libraries = [*sys.path]  # without the project's folder
        self.paths = {module_name(path): path for path in texts}
        self.texts = texts
        self.folders = {".".join(name.split(".")[:end]) for name in self.paths for end in range(1, name.count(".") + 1)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == LIBRARY or fullname.startswith(f"{LIBRARY}."):
            return importlib.machinery.PathFinder.find_spec(fullname, path or self.libraries)
        if fullname in self.paths:
            place = os.path.join(self.root, self.paths[fullname])
            package = place.endswith("/__init__.py")
            spec = importlib.machinery.ModuleSpec(fullname, self, origin=place, is_package=package)  # type: ignore[arg-type]
            spec.has_location = True
            if package:
                spec.submodule_search_locations = [os.path.dirname(place)]
            return spec
        if fullname in self.folders:
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [os.path.join(self.root, *fullname.split("."))]
            return spec
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Let Python create the module as usual."""

    def exec_module(self, module: types.ModuleType) -> None:
        path = self.paths[module.__name__]
        exec(compile(self.texts[path], os.path.join(self.root, path), "exec"), module.__dict__)  # noqa: S102

    def where(self, error: BaseException) -> tuple[str, int]:
        """Return the file of the project and the line of the innermost frame of an error; '' for no such file."""
        if isinstance(error, SyntaxError) and (name := self._project_path(error.filename or "")):
            return name, error.lineno or 1
        place = ("", 0)
        for frame, line in traceback.walk_tb(error.__traceback__):
            if name := self._project_path(frame.f_code.co_filename):
                place = (name, line)
        return place

    def relative(self, filename: str) -> str:
        return self._project_path(filename) or filename

    def _project_path(self, filename: str) -> str:
        name = os.path.relpath(filename, self.root) if filename.startswith(self.root + os.sep) else ""
        return name if name in self.texts else ""


class Answering:
    """The child's answers to requests; `files` are set when the project is opened."""

    def __init__(self) -> None:
        self.files: Files | None = None
        self.execution: Execution | None = None

    def locate(self, error: BaseException) -> tuple[str, int]:
        return self.files.where(error) if self.files else ("", 0)

    def interrupt(self) -> None:
        if self.execution is not None:
            self.execution.interrupt()

    def answer(self, request: Mapping[str, Any]) -> Any:
        match request["op"]:
            case "open":
                self.files = Files(request["root"], request["files"])
                sys.meta_path.insert(0, self.files)
                sys.path.insert(0, request["root"])
                sys.path += [request["packages"]] if request["packages"] else []  # last: mergeplan's own libraries win
                return None
            case "load":
                return self._load_files(request)
            case "macro":
                from mergeplan.planner.python.macro_calls import call_macro

                macros = {name: macro.function for name, macro in shims.REGISTRY.macros.items()}
                return call_macro(
                    macros[request["name"]], Evaluator(request, macros), request["args"], request["kwargs"]
                )
            case "sql":
                from mergeplan.planner.python.macro_calls import sql_of

                macros = {name: macro.function for name, macro in shims.REGISTRY.macros.items()}
                evaluator = Evaluator(request, macros)
                return list(sql_of(self._import_entry(request)(evaluator), request["dialect"]))
            case "execute":
                self.execution = self.execution or Execution(request["spark"])
                return self.execution.run(self._import_entry(request), request)
            case "signal":
                batch = intervals_of(request["intervals"])
                self.execution = self.execution or Execution(request["spark"])
                context = Context(request, self.execution)
                function = shims.REGISTRY.signals[request["name"]].function
                return check_readiness(function, batch, context, request["kwargs"])
            case "lint":
                return rules.check_models(request)
        raise ValueError(f"{request['op']}: unknown operation")

    def _load_files(self, request: Mapping[str, Any]) -> Any:
        assert self.files is not None
        errors = []
        for path in request["paths"]:
            try:
                importlib.import_module(module_name(path))
            except BaseException as error:  # a project's file may raise, or exit, as it likes
                errors.append({**error_data(error, self.locate), "file": path})
        registry = shims.REGISTRY
        return {
            "macros": sorted(registry.macros),
            "signals": [self._registration_data(declaration) for declaration in registry.signals.values()],
            "models": [self._model_data(model) for model in registry.models],
            "errors": errors,
        }

    def _registration_data(self, registration: shims.Decorated) -> dict[str, Any]:
        assert self.files is not None
        return {"name": registration.name, "path": self.files.relative(registration.path), "line": registration.line}

    def _model_data(self, registration: shims.Decorated) -> dict[str, Any]:
        return {
            **self._registration_data(registration),
            "arguments": {key: argument_data(value) for key, value in registration.arguments.items()},
        }

    def _import_entry(self, request: Mapping[str, Any]) -> Any:
        return getattr(importlib.import_module(module_name(request["path"])), request["entrypoint"])


def argument_data(value: Any) -> Any:
    """Return a decorator's argument as JSON data; SQL expressions, kinds and dates have their own forms."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return argument_data(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(argument_data(key)): argument_data(element) for key, element in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [argument_data(element) for element in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, datetime) or hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, shims.ModelKind):
        return {"name": value.name, **{key: argument_data(element) for key, element in value.settings.items()}}
    if isinstance(value, shims.TimeColumn):
        return {"column": argument_data(value.column), **({"format": value.format} if value.format else {})}
    if hasattr(value, "sql"):
        return {"$sql": value.sql(dialect="spark")}
    raise TypeError(f"`{type(value).__name__}` is not a value that @model accepts")


def main() -> None:
    """Serve requests, with the modules that models, macros, signals and rules import."""
    shims.install_modules()
    rules.install_rules()
    serve_pipes(Answering())


if __name__ == "__main__":
    main()
