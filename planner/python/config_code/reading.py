"""Runs a config.py in a child, and reads its result; no value of an environment variable reaches the child."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from mergeplan.planner.errors import Place, ProjectError, Refused
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.parsing.files.configuration import MARK, CodeConfiguration, CodeVariable, replacement_hint
from mergeplan.planner.python.config_code.references import NAME, VARIABLE
from mergeplan.planner.python.files.code_files import list_code_files
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.python.isolation import HINT, NO_ISOLATION, Isolation
from mergeplan.planner.python.messages import ChildMessage, Wrong
from mergeplan.planner.python.messages import Path as FilePath

PROGRAM = "mergeplan.planner.python.config_code.child"
SECONDS = 40.0  # that the file may take; the child has a limit of the processor's time besides
LONGEST = 100_000  # characters of a config.py
Key = str | Annotated[int, Field(ge=0)]
MODULES = {
    "os": {"environ", "getenv", "path"},
    "os.path": {"join", "dirname", "abspath", "realpath"},
    "pathlib": {"Path", "PurePath"},
    "dotenv": {"load_dotenv", "find_dotenv"},
}
ATTRIBUTES = {"environ", "getenv", "get", "path", "join", "dirname", "abspath", "realpath", "Path", "PurePath"}
ATTRIBUTES |= {"parent", "parents", "resolve", "absolute", "as_posix", "copy", "value", "load_dotenv"}
ATTRIBUTES |= {"core", "config", "all_full", "all_semi", "all_off"}
BUILTINS = {"str", "int", "float", "bool", "list", "tuple", "set", "frozenset", "dict", "print"}
BUILTINS |= {"__file__", "__name__"}
NODES = (  # beside those that are looked at one by one
    ast.Module, ast.alias, ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass, ast.Load, ast.Store, ast.Subscript,
    ast.Constant, ast.Call, ast.keyword, ast.Starred, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.JoinedStr, ast.BinOp,
    ast.Add, ast.Div, ast.BitOr, ast.UnaryOp, ast.USub, ast.UAdd,
)  # fmt: skip


class RecordedVariable(ChildMessage):
    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    default: str | int | float | bool | None = None
    filters: tuple[Literal["int", "float", "lower", "upper", "trim"], ...] = ()


class RecordedConfig(ChildMessage):
    """The result of the file; `value` contains marks of `variables` by their numbers."""

    value: dict[str, Any]
    lines: tuple[tuple[tuple[Key, ...], Annotated[int, Field(ge=0)]], ...]
    unclear: tuple[tuple[tuple[Key, ...], Annotated[str, Field(max_length=300)]], ...]
    variables: tuple[RecordedVariable, ...]
    files: Annotated[tuple[FilePath, ...], Field(max_length=10_000)] = ()

    @model_validator(mode="after")
    def _has_each_variable(self) -> Self:
        _check_marks(self.value, len(self.variables))
        return self


def _check_marks(value: Any, variables: int) -> None:
    """Raise ValueError for a mark of a variable that does not exist."""
    if isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_marks(inner, variables)
    elif isinstance(value, str) and any(int(mark[1]) >= variables for mark in MARK.finditer(value)):
        raise ValueError("a variable that was not read")


def run_config(
    root: Path, text: str, environment: Mapping[str, str], isolation: Isolation = NO_ISOLATION, path: str = "config.py"
) -> CodeConfiguration:
    """Return the configuration of a folder's config.py; raise ProjectError at its line.

    Raise Refused if the file cannot be isolated. Of the environment, the child gets which variables are set, and the
    values that the operator lets it see.
    """
    if len(text) > LONGEST:
        raise ProjectError(f"The file has more than {LONGEST} characters.", place=Place(path, 1))
    isolation = _isolation_for(text, isolation, path)
    try:
        child = Child(root, {}, isolation, PROGRAM)
        try:
            answer = child.ask({"op": "config", "text": text, **known_values(environment)}, SECONDS)
        finally:
            child.stop()
    except ChildFailed as failed:
        raise failure_of(failed.wrong, path, text) from None
    return configuration_of(answer, root, path)


def known_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return which variables are set, and the values that are empty or that the operator lets a config.py see."""
    allowed = {name.strip() for name in environment.get(VARIABLE, "").split(",")}
    values = {name: value for name, value in environment.items() if name in allowed or not value}
    return {"values": values, "filled": sorted(environment.keys() - values.keys())}


def configuration_of(answer: Any, root: Path, path: str = "config.py") -> CodeConfiguration:
    """Return the configuration of a child's answer; raise ProjectError for an invalid one."""
    try:
        recorded = RecordedConfig.model_validate(answer)
    except ValidationError:
        raise failure_of(Wrong(message="Its reply is invalid."), path) from None
    variables = tuple(
        CodeVariable(variable.name, variable.default, variable.filters) for variable in recorded.variables
    )
    files = tuple(dict.fromkeys((path, *(_sibling_path(path, file) for file in recorded.files))))
    lines = dict(recorded.lines)
    return CodeConfiguration(path, recorded.value, lines, variables, recorded.unclear, str(root), files=files)


def mentioned_names(root: Path, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the environment variables that Python files of a folder mention, in code that ran or did not."""
    names = environment.keys() - {name.strip() for name in environment.get(VARIABLE, "").split(",")}
    words: set[str] = set()
    for file in list_code_files(root):
        words |= set(re.findall(r"\w+", file.read_text("utf-8", "replace"))) if file.is_file() else set()
    return frozenset(names & words)


def _isolation_for(text: str, isolation: Isolation, path: str) -> Isolation:
    """Return how the file is isolated: one of a plain form does nothing that isolation would prevent.

    Raise Refused for any other file if isolation is required and not possible.
    """
    if not isolation.required or not (obstacle := cannot()):
        return isolation
    if line := beyond_plain(text):
        message = f"The configuration is Python code, and it cannot be isolated here: {obstacle}."
        raise Refused(message, place=Place(path, line), hint=f"{HINT} A config.yaml needs no isolation.")
    return NO_ISOLATION


def failure_of(wrong: Wrong, path: str, text: str = "") -> ProjectError:
    """Return the error of a config.py, at its place or at that of the module that it imports."""
    file, line = (wrong.path, wrong.line) if wrong.path else ("config.py", 1)
    message = f"{wrong.message.rstrip('.')}."
    return ProjectError(
        message, place=Place(_sibling_path(path, file), line), hint=replacement_hint(_config_keywords(text))
    )


def _config_keywords(text: str) -> tuple[str, ...]:
    try:
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    named = [call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) == "Config"]
    return tuple(keyword.arg for call in named[:1] for keyword in call.keywords if keyword.arg)


def _sibling_path(path: str, file: str) -> str:
    return (Path(path).parent / file).as_posix()


def beyond_plain(text: str) -> int:
    """Return the line of the first statement that is more than plain; 0 if there is none."""
    try:
        tree = ast.parse(text)
        bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {
            name.asname or name.name.partition(".")[0]
            for node in ast.walk(tree)
            for name in (node.names if isinstance(node, ast.Import | ast.ImportFrom) else [])
        }
        odd = (part for part in tree.body if not all(_is_plain(node, bound) for node in ast.walk(part)))
        return next((part.lineno for part in odd), 0)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1


def _is_plain(node: ast.AST, bound_names: set[str]) -> bool:
    match node:
        case ast.Import(names=names):
            return all(name.name in MODULES or _of_sqlmesh(name.name) for name in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            if _of_sqlmesh(module):
                return all(name.name[0].isalpha() for name in names)
            return module == "__future__" or MODULES.get(module, set()).issuperset(name.name for name in names)
        case ast.Name(name):
            return name in bound_names or name in BUILTINS
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            return False
        case ast.Attribute(attr=name):
            return name in ATTRIBUTES or (name[:1].isupper() and name.isidentifier())
        case ast.FormattedValue(conversion=conversion, format_spec=form):
            return form is None and conversion == -1
    return isinstance(node, NODES)


def _of_sqlmesh(module: str) -> bool:
    return module.partition(".")[0] == "sqlmesh"
