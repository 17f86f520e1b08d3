"""What a config.py says, as data: plain values, and texts that hold environment variables or the project's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

MOST = 5_000  # values, each counted wherever it is used, and hundreds of characters
DEEPEST = 60
Scalar = str | int | float | bool | None


class Unreadable(Exception):
    """What cannot be read without running it: a sentence, its line, and what to do."""

    def __init__(self, line: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.hint = line, message, hint


@dataclass(frozen=True)
class Variable:
    """An environment variable; it must be set where `default` is None. `whole`: as a whole number."""

    name: str
    default: Scalar = None
    whole: bool = False


@dataclass(frozen=True)
class Joined:
    """A text with environment variables in it."""

    parts: tuple[str | Variable, ...]


@dataclass(frozen=True)
class FilePath:
    """A path; where `inside`, it goes from the project's folder."""

    text: str
    inside: bool = False


@dataclass(frozen=True)
class Member:
    """A member of an enumeration, as YAML writes it: in Python its text is another one."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list, a tuple or a set."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Entries:
    """A mapping, or what a class of SQLMesh is made with; each key has its line."""

    values: Mapping[str | int, tuple[int, Value]]
    made_by: str = ""


Content = Scalar | Variable | Joined | FilePath | Member | Items | Entries


@dataclass(frozen=True)
class Value:
    """A content, its line, and how much and how deep it is once all that it refers to is written out."""

    content: Content
    line: int
    size: int
    depth: int


@dataclass(frozen=True)
class Substitutions:
    """The values of environment variables (by name and line), and the project's folder."""

    variable: Callable[[Variable, int], Scalar]
    root: PurePosixPath


def build_value(content: Content, line: int) -> Value:
    """The content as a Value; Unreadable when it is too much."""
    inner: tuple[Value, ...] = ()
    if isinstance(content, Items):
        inner = content.values
    elif isinstance(content, Entries):
        inner = tuple(value for _, value in content.values.values())
    size = 1 + sum(inner_value.size for inner_value in inner) + _length(content) // 100
    depth = 1 + max((inner_value.depth for inner_value in inner), default=0)
    if size > MOST or depth > DEEPEST:
        raise Unreadable(line, "This value is too large, or nested too deeply.")
    if isinstance(content, int) and abs(content) >= 2**63:
        raise Unreadable(line, "This number is too large.")
    return Value(content, line, size, depth)


def _length(content: Content) -> int:
    match content:
        case str():
            return len(content)
        case Joined():
            return sum(len(part) if isinstance(part, str) else 1 for part in content.parts)
        case FilePath():
            return len(content.text)
        case _:
            return 0


def parts_of(content: Content, line: int) -> tuple[str | Variable, ...]:
    """A content as the text that Python's `str` makes of it; Unreadable for what has no text of its own."""
    match content:
        case Joined():
            return content.parts
        case Variable():
            return (content,)
        case FilePath(text, inside=False):
            return (text,)
        case FilePath():
            raise Unreadable(line, "The project's folder can only be the beginning of a path.")
        case Items() | Entries() | Member():
            raise Unreadable(line, "A text that is made of a list, a mapping or an enumeration cannot be read.")
        case _:
            return (str(content),)


def join_parts(parts: tuple[str | Variable, ...]) -> Content:
    """Parts as one content, a plain text where there is no variable."""
    if any(isinstance(part, Variable) for part in parts):
        return Joined(parts)
    return "".join(part for part in parts if isinstance(part, str))


def plain(
    value: Value, at: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int], substitutions: Substitutions
) -> Any:
    """A value as YAML would hold it; `lines` takes the line of every key and item. Unreadable."""
    lines.setdefault(at, value.line)
    match value.content:
        case Items(values):
            return [plain(element, (*at, index), lines, substitutions) for index, element in enumerate(values)]
        case Entries(entries):
            lines.update({(*at, str(key)): line for key, (line, _) in entries.items()})
            return {key: plain(entry, (*at, str(key)), lines, substitutions) for key, (_, entry) in entries.items()}
        case _:
            return _check_scalar(_resolve_scalar(value, at, substitutions), value.line)


def _resolve_scalar(value: Value, at: tuple[str | int, ...], substitutions: Substitutions) -> Scalar:
    content, line = value.content, value.line
    match content:
        case Variable():
            return substitutions.variable(content, line)
        case Joined(parts):
            return "".join(part if isinstance(part, str) else str(substitutions.variable(part, line)) for part in parts)
        case FilePath(text, inside=False) | Member(text):
            return text
        case FilePath(text):
            if "variables" in at:
                message = "A variable cannot hold the project's folder: it differs from machine to machine."
                raise Unreadable(line, message, "Write what the models need of it as a text.")
            return _absolute(substitutions.root, text)
    assert not isinstance(content, Items | Entries)
    return content


def _absolute(root: PurePosixPath, text: str) -> str:
    parts = list(PurePosixPath(text).parts)
    while parts and parts[0] == "..":
        root, parts = root.parent, parts[1:]
    return str(root.joinpath(*parts))


def _check_scalar(found: Scalar, line: int) -> Scalar:
    """The value, if it is what config.yaml could hold too."""
    if isinstance(found, str) and "{{" in found:
        raise Unreadable(line, "Double braces are not supported in the texts of a configuration.")
    if isinstance(found, str) and any("\ud800" <= character <= "\udfff" for character in found):
        raise Unreadable(line, "This text holds a character that is not Unicode.")
    return found
