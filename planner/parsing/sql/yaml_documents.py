"""Read YAML as plain data with the line of every key and `{{ env_var('X') }}` filled in; duplicate keys are errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.sql.yaml_problems import explain_yaml_error
from mergeplan.planner.parsing.sql.yaml_variables import HINT, SUPPORTED, Replacement, Variable, replace_variables

Path = tuple[str | int, ...]
MOST = 1_000_000  # values in a file, each counted wherever an alias repeats it
LONGEST = 16_000_000  # characters of a file
DEEPEST = 100  # lists and mappings inside each other: C code that reads deeper ones ends the process
LONGEST_NUMBER = 1_000  # characters of a number or a date: reading one takes the square of its length
_NUMBERS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))
MERGED = "tag:yaml.org,2002:merge"  # of the key `<<`, whose values do not replace those of another
_MARK = re.compile("\ue000(\\d+)\ue001")
_TYPED = tuple(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool"))
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Document:
    """The content of a YAML file, and the place of each of its keys and items."""

    path: str
    value: Any
    lines: Mapping[Path, int]

    def place(self, key_path: Path = ()) -> Place:
        """Return the place of a key or an item, or of the nearest one above it that has a line."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return Place(self.path, self.lines.get(key_path, 1))

    def error(self, key_path: Path, message: str, hint: str = "") -> ProjectError:
        return ProjectError(message, place=self.place(key_path), hint=hint)


def read_document(
    path: str, text: str, variable_value: Replacement | None = None, *, last_wins: bool = False
) -> Document:
    """Return the file as a Document; raise ProjectError at broken YAML, a double key or a missing variable.

    `variable_value` allows `{{ env_var('X') }}` and returns its value; None leaves braces alone. With `last_wins`, a
    double key is no error, as in dbt.
    """
    if len(text) > LONGEST:
        raise ProjectError(f"The file has more than {LONGEST} characters.", place=Place(path))
    values: list[str] = []
    if variable_value is not None:
        text = _mark_variables(path, text, variable_value, values)
    lines: dict[Path, int] = {}
    try:
        value = _load_value(path, text, lines, values, last_wins)
    except yaml.MarkedYAMLError as error:
        raise explain_yaml_error(path, text, error) from None
    except yaml.reader.ReaderError as error:
        place = Place(path, text.count("\n", 0, max(error.position, 0)) + 1)
        raise ProjectError(
            f"This is not YAML: it contains a character that is not allowed ({error.reason}).", place=place
        ) from None
    return Document(path, value, lines)


def _load_value(path: str, text: str, lines: dict[Path, int], values: list[str], last_wins: bool) -> Any:
    _check_depth(path, text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _measure_node(path, node, {}, 1)[0] > MOST:
            message = f"The file has more than {MOST} values when its aliases are expanded."
            raise ProjectError(message, place=Place(path))
        if last_wins:
            _drop_repeated(node)
        return _node_value(path, loader, node, (), lines, values)
    finally:
        loader.dispose()


def _check_depth(path: str, text: str) -> None:
    """Raise ProjectError at the line where nesting is too deep, before any list or mapping is built."""
    openers = text.count("[") + text.count("{")
    longest = max(map(len, text.split("\n")))
    if openers + 2 * longest < DEEPEST:
        return  # a bracket opens one level, and so do an indented key and a list below it
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _too_deep(path, event.start_mark.line + 1 if event.start_mark else 0)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _too_deep(path: str, line: int) -> ProjectError:
    return ProjectError(f"Lists and mappings are nested more than {DEEPEST} deep.", place=Place(path, line))


def _measure_node(path: str, node: yaml.Node, sizes: dict[int, tuple[int, int] | None], depth: int) -> tuple[int, int]:
    """Return the number and depth of a node's values, aliases expanded; raise ProjectError if cyclic or too deep."""
    place = Place(path, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        return 1, 0
    if id(node) not in sizes:
        if depth > DEEPEST:
            raise _too_deep(path, place.line)
        sizes[id(node)] = None  # under way
        inner = (part for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
        parts = [_measure_node(path, part, sizes, depth + 1) for part in inner]
        sizes[id(node)] = 1 + sum(count for count, _ in parts), 1 + max((height for _, height in parts), default=0)
    size = sizes[id(node)]
    if size is None:
        raise ProjectError("This YAML is not supported: an alias refers to a value that contains it.", place=place)
    if depth + size[1] > DEEPEST + 1:
        raise _too_deep(path, place.line)
    return size


def _drop_repeated(node: yaml.Node) -> None:
    waiting, node_ids = [node], set()
    while waiting:
        node = waiting.pop()
        if id(node) in node_ids or isinstance(node, yaml.ScalarNode):
            continue
        node_ids.add(id(node))
        if isinstance(node, yaml.MappingNode):
            last = {key.value if isinstance(key, yaml.ScalarNode) and key.tag != MERGED else id(key): (key, value)
                    for key, value in node.value}  # fmt: skip
            node.value = [*last.values()]
        waiting += [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]


def _node_value(
    path: str, loader: Any, node: yaml.Node, key_path: Path, lines: dict[Path, int], values: list[str]
) -> Any:
    lines.setdefault(key_path, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        return _scalar_value(path, loader, node, key_path, values)
    if isinstance(node, yaml.SequenceNode):
        return [
            _node_value(path, loader, item, (*key_path, index), lines, values) for index, item in enumerate(node.value)
        ]
    assert isinstance(node, yaml.MappingNode)
    loader.flatten_mapping(node)  # `<<: *defaults`
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = _node_value(path, loader, key_node, (*key_path, "?"), {}, values)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str | int | float | bool) and key is not None and not hasattr(key, "isoformat"):
            hint = "Put it in quotes: without them, `{` and `[` begin a mapping or a list."
            raise ProjectError("A key must be a string.", place=Place(path, line), hint=hint)
        if key in mapping:
            raise ProjectError(f"`{key}` is given twice.", place=Place(path, line))
        lines[(*key_path, str(key))] = line
        mapping[key] = _node_value(path, loader, value_node, (*key_path, str(key)), lines, values)
    return mapping


def _scalar_value(path: str, loader: Any, node: yaml.ScalarNode, key_path: Path, values: list[str]) -> Any:
    """Return the value of a scalar; one with an environment variable is a text, which a password must remain.

    In `variables`, which have no types of their own, an unquoted number or boolean is one.
    """
    place = Place(path, node.start_mark.line + 1)
    if "{{" in node.value and path.endswith("config.yaml"):
        raise ProjectError(SUPPORTED, place=place, hint=HINT)
    if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
        message = f"`{node.value[:20]}...` is longer than {LONGEST_NUMBER} characters."
        raise ProjectError(message, place=place, hint="Put a text in quotes.")
    try:
        if _MARK.search(node.value):
            return _fill_variables(loader, node, key_path, values)
        return loader.construct_object(node)
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:  # 2026-02-30, !!bool maybe
        reason = f": {error}" if isinstance(error, ValueError) else ""
        raise ProjectError(f"`{node.value[:40]}` is not a valid value{reason}.", place=place) from None


def _fill_variables(loader: Any, node: yaml.ScalarNode, key_path: Path, values: list[str]) -> Any:
    text = _MARK.sub(lambda match: values[index] if (index := int(match[1])) < len(values) else match[0], node.value)
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if node.style or "variables" not in key_path or tag not in _TYPED:  # style: None in Python's parser, '' in C's
        return text
    return loader.construct_object(yaml.ScalarNode(tag, text))


def _mark_variables(path: str, text: str, variable_value: Replacement, values: list[str]) -> str:
    """Return the text with a mark in place of each variable: values never become YAML syntax."""

    def mark(variable: Variable, place: Place) -> str:
        values.append(variable_value(variable, place))
        return f"\ue000{len(values) - 1}\ue001"

    return replace_variables(path, text, mark)
