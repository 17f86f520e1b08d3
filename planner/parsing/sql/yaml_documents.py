"""A YAML file as plain data, with the line of every key: `{{ env_var('X') }}` filled in, a duplicate key is an
error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from planner.errors import Place, ProjectError

Path = tuple[str | int, ...]
_ENV = re.compile(r"\{\{\s*env_var\(\s*(['\"])(\w+)\1\s*(?:,\s*(['\"])(.*?)\3\s*)?\)\s*\}\}")
MOST = 1_000_000  # values that a file may hold, each counted wherever an alias repeats it
_MARK = re.compile("\ue000(\\d+)\ue001")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Document:
    """The content of a YAML file, and the place of each of its keys and items."""

    path: str
    value: Any
    lines: Mapping[Path, int]

    def place(self, at: Path = ()) -> Place:
        """The place of a key or an item; the nearest one above it when it has no line of its own."""
        while at and at not in self.lines:
            at = at[:-1]
        return Place(self.path, self.lines.get(at, 1))

    def error(self, at: Path, message: str, hint: str = "") -> ProjectError:
        """An error at a key or an item."""
        return ProjectError(message, place=self.place(at), hint=hint)


def read_document(path: str, text: str, environment: Mapping[str, str] | None = None) -> Document:
    """The file as a Document; ProjectError at the line of broken YAML, a double key or a missing variable.

    `environment` allows `{{ env_var('X') }}` and gives its values; None leaves braces alone.
    """
    values: list[str] = []
    if environment is not None:
        text = _mark_variables(path, text, environment, values)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Path, int] = {}
        if node is not None and _weight(path, node, {}) > MOST:
            raise ProjectError(
                f"The file has more than {MOST} values when its aliases are expanded.", place=Place(path)
            )
        value = None if node is None else _value(path, loader, node, (), lines, values)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        problem = f"{error.context or ''} {error.problem or ''}".strip()
        raise ProjectError(f"This is not YAML: {problem}.", place=place) from None
    except yaml.reader.ReaderError as error:
        place = Place(path, text.count("\n", 0, max(error.position, 0)) + 1)
        raise ProjectError(
            f"This is not YAML: it contains a character that is not allowed ({error.reason}).", place=place
        ) from None
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"This is not YAML: {error}.", place=Place(path)) from None
    finally:
        loader.dispose()
    return Document(path, value, lines)


def _weight(path: str, node: yaml.Node, known: dict[int, int | None]) -> int:
    """The number of values of a node, aliases expanded; ProjectError at the line of one that holds itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = None  # under way
        inner = (each for item in node.value for each in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_weight(path, each, known) for each in inner)
    found = known[id(node)]
    if found is None:
        place = Place(path, node.start_mark.line + 1)
        raise ProjectError("This YAML is not supported: an alias refers to a value that contains it.", place=place)
    return found


def variables_in(text: str) -> frozenset[str]:
    """The names of the environment variables that a text uses."""
    return frozenset(match[2] for match in _ENV.finditer(text))


def _value(path: str, loader: Any, node: yaml.Node, at: Path, lines: dict[Path, int], values: list[str]) -> Any:
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(path, loader, node, values)
    if isinstance(node, yaml.SequenceNode):
        return [_value(path, loader, item, (*at, index), lines, values) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.MappingNode)
    loader.flatten_mapping(node)  # `<<: *defaults`
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = _value(path, loader, key_node, (*at, "?"), {}, values)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str | int | float | bool) and key is not None and not hasattr(key, "isoformat"):
            raise ProjectError("A key must be a string.", place=Place(path, line))
        if key in found:
            raise ProjectError(f"`{key}` is given twice.", place=Place(path, line))
        lines[(*at, str(key))] = line
        found[key] = _value(path, loader, value_node, (*at, str(key)), lines, values)
    return found


def _scalar(path: str, loader: Any, node: yaml.ScalarNode, values: list[str]) -> Any:
    """A scalar as YAML means it; a plain one that held a variable is read again, so that a number stays a number."""
    if _MARK.search(node.value):
        marks = dict(enumerate(values))
        node.value = _MARK.sub(lambda match: marks.get(int(match[1]), match[0]), node.value)
        if node.style is None:
            node.tag = loader.resolve(yaml.ScalarNode, node.value, (True, False))
    if "{{" in node.value and path.endswith("config.yaml"):
        place = Place(path, node.start_mark.line + 1)
        raise ProjectError("Only `{{ env_var('NAME') }}` is supported in double braces.", place=place)
    return loader.construct_object(node)


def _mark_variables(path: str, text: str, environment: Mapping[str, str], values: list[str]) -> str:
    """Marks in place of variables: their values never become YAML syntax, and comments are left alone."""

    def mark(match: re.Match[str]) -> str:
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if re.search(r"(^|\s)#", before):
            return match[0]
        value: str | None = environment.get(match[2], match[4])
        if value is None:
            place = Place(path, text.count("\n", 0, match.start()) + 1)
            raise ProjectError(f"The environment variable `{match[2]}` is not set.", place=place)
        values.append(value)
        return f"\ue000{len(values) - 1}\ue001"

    return _ENV.sub(mark, text)
