"""The calls of a config.py that are understood: environment variables, paths, Python's own types, SQLMesh's classes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mergeplan.planner.parsing.config_code.sqlmesh_names import CATEGORIZED, MODES, TYPES, class_named
from mergeplan.planner.parsing.config_code.values import (
    Content,
    Entries,
    FilePath,
    Items,
    Joined,
    Scalar,
    Unreadable,
    Value,
    Variable,
    build_value,
    join_parts,
    parts_of,
)

WITHOUT_RUNNING = "and mergeplan reads config.py without running it."


@dataclass(frozen=True)
class Call:
    """A call with its arguments, each read; keywords have their lines."""

    name: str  # the full one, such as `os.environ.get`
    line: int
    values: tuple[Value, ...] = ()
    keywords: Mapping[str | int, tuple[int, Value]] = field(default_factory=dict)

    @property
    def short(self) -> str:
        return self.name.removeprefix("builtins.")

    def only(self) -> Content:
        """The content of its one argument; Unreadable for a call with others."""
        if len(self.values) != 1 or self.keywords:
            raise self.unreadable()
        return self.values[0].content

    def unreadable(self) -> Unreadable:
        return Unreadable(self.line, f"A call of `{self.short}` decides the configuration here, {WITHOUT_RUNNING}")


def read_call(call: Call) -> Content:
    """What a call gives; Unreadable when it is not known."""
    if call.name in CALLS:
        return CALLS[call.name](call)
    if made := class_named(call.name):
        return _class_entries(call, made)
    owner, _, last = call.name.rpartition(".")
    if last == "sqlmesh_config":
        message = "`sqlmesh_config` makes the configuration of a dbt project."
        raise Unreadable(call.line, message, "mergeplan opens SQLMesh's own projects, and none of dbt.")
    if class_named(owner) == "CategorizerConfig" and last in MODES and not call.values and not call.keywords:
        return _entries(dict.fromkeys(CATEGORIZED, MODES[last]), call.line)
    raise call.unreadable()


def environment(call: Call) -> Content:
    """`os.environ["X"]`, `os.environ.get("X", "default")` and `os.getenv`; Unreadable for other names and defaults."""
    arguments = [*call.values, *(value for key, (_, value) in call.keywords.items() if key == "default")]
    name = arguments[0].content if call.values else None
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or len(arguments) > 2:
        raise call.unreadable()
    if len(arguments) - len(call.values) != len(call.keywords):
        raise call.unreadable()
    default = arguments[1].content if len(arguments) == 2 else None
    if not isinstance(default, str | int | float | None):
        message = f"The default of the environment variable `{name}` is not a plain value."
        raise Unreadable(call.line, message, "Write it as a text, or set the variable.")
    return Variable(name, default)


def add_values(left: Value, right: Value, line: int) -> Content:
    """`+` of two texts, or of two lists; Unreadable."""
    one, two = left.content, right.content
    if isinstance(one, Items) and isinstance(two, Items):
        return Items((*one.values, *two.values))
    if isinstance(one, FilePath) and one.inside and isinstance(two, str) and two.startswith("/"):
        return below(one, two.lstrip("/"))
    if _is_text(one) and _is_text(two):
        return join_parts((*parts_of(one, line), *parts_of(two, line)))
    raise Unreadable(line, f"This sum is not one of texts or of lists, {WITHOUT_RUNNING}")


def _is_text(content: Content) -> bool:
    if isinstance(content, Variable):
        return not content.whole and isinstance(content.default, str | None)
    return isinstance(content, str | Joined | FilePath)


def below(left: Content, right: Content) -> FilePath | None:
    """A path and one below it, as Python joins them; None for what is no path."""
    if not isinstance(left, str | FilePath) or not isinstance(right, str | FilePath):
        return None
    if isinstance(left, str):
        left = FilePath(left)
    text = right if isinstance(right, str) else right.text
    inside = isinstance(right, FilePath) and right.inside
    if inside or text.startswith("/"):
        return FilePath(text, inside)
    return FilePath(str(PurePosixPath(left.text) / text), left.inside)


def parent(path: FilePath) -> FilePath:
    """The folder of a path; of the project's folder the one above it."""
    pure = PurePosixPath(path.text)
    above = pure.parent if pure.name not in ("", "..") else pure / ".." if path.inside else pure.parent
    return FilePath(str(above), path.inside)


def _path(call: Call) -> Content:
    path: FilePath | None = FilePath(".")
    for argument in call.values:
        path = below(path, argument.content)
    if path is None or call.keywords:
        raise call.unreadable()
    return path


def _join_paths(call: Call) -> Content:
    """`os.path.join`, which leaves texts as they are: `s3://lake` too."""
    texts, inside = list[str](), False
    for argument in call.values:
        path = argument.content if isinstance(argument.content, FilePath) else FilePath(str(argument.content))
        if not isinstance(argument.content, str | FilePath):
            raise call.unreadable()
        inside = path.inside or (inside and not path.text.startswith("/"))
        texts = [path.text] if path.inside else [*texts, path.text]
    if not texts or call.keywords:
        raise call.unreadable()
    return FilePath(posixpath.join(*texts), inside)


def _folder(call: Call) -> Content:
    path = call.only()
    if not isinstance(path, FilePath):
        raise call.unreadable()
    return parent(path)


def _same(call: Call) -> Content:
    """The absolute form of a path in the project, which it has anyhow."""
    path = call.only()
    if not isinstance(path, FilePath) or not path.inside:
        raise call.unreadable()
    return path


def _text(call: Call) -> Content:
    content = call.only()
    return content if isinstance(content, FilePath) else join_parts(parts_of(content, call.line))


def _whole(call: Call) -> Content:
    content = call.only()
    if isinstance(content, Variable) and isinstance(content.default, str | int | None):
        return Variable(content.name, content.default, whole=True)
    return _convert(call, int)


def _convert(call: Call, kind: Callable[[str | float], Scalar]) -> Content:
    content = call.only()
    if not isinstance(content, str | int | float) or (kind is bool and isinstance(content, str)):
        raise call.unreadable()
    try:
        return kind(content)
    except (ValueError, OverflowError):
        raise Unreadable(call.line, f"This is not a number for `{call.short}`.") from None


def _sequence(call: Call) -> Content:
    if not call.values and not call.keywords:
        return Items(())
    content = call.only()
    if not isinstance(content, Items):
        raise call.unreadable()
    return content


def _mapping(call: Call) -> Content:
    first = call.values[0].content if call.values else Entries({})
    if len(call.values) > 1 or not isinstance(first, Entries) or first.made_by:
        raise call.unreadable()
    return Entries({**first.values, **call.keywords})


def _class_entries(call: Call, name: str) -> Content:
    """A class of SQLMesh: a mapping of its keywords, with the `type` that its name stands for."""
    if call.values:
        message = f"`{name}` takes keywords only: `{name}(key=...)`."
        raise Unreadable(call.line, message)
    keywords = dict(call.keywords)
    if kind := TYPES.get(name):
        _, type_value = keywords.setdefault("type", (call.line, build_value(kind, call.line)))
        if type_value.content != kind:
            raise Unreadable(type_value.line, f"The `type` of `{name}` is `{kind}`.")
    return Entries(keywords, made_by=name)


def _entries(values: Mapping[str, str], line: int) -> Entries:
    return Entries({name: (line, build_value(value, line)) for name, value in values.items()})


CALLS: dict[str, Callable[[Call], Content]] = {
    "os.environ.get": environment,
    "os.getenv": environment,
    "os.path.abspath": _same,
    "os.path.dirname": _folder,
    "os.path.join": _join_paths,
    "os.path.realpath": _same,
    "pathlib.Path": _path,
    "builtins.str": _text,
    "builtins.int": _whole,
    "builtins.float": lambda call: _convert(call, float),
    "builtins.bool": lambda call: _convert(call, bool),
    "builtins.list": _sequence,
    "builtins.tuple": _sequence,
    "builtins.set": _sequence,
    "builtins.frozenset": _sequence,
    "builtins.dict": _mapping,
}
