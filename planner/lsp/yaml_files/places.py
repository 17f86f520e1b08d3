"""The path of an offset in a YAML text: the keys around it, by indentation, since an unfinished text does not parse.

Mappings and lists in brackets are read as the value of their key.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mergeplan.planner.lsp.texts import Span

ITEM = 0  # in a path, for an item of a list
Step = str | int
_KEY = re.compile(r"""(?P<quote>["']?)(?P<key>[^\s"'#:{}\[\],&*!|>%@`-][^:#"']*?|)(?P=quote)\s*:(?:\s|$)""")
_WORD = re.compile(r"[\w.$-]*")


@dataclass(frozen=True)
class YamlPlace:
    """The path to the mapping, list or value around an offset; the word there, and the keys beside it.

    In a mapping `key` is None; for a value it is its key.
    """

    path: tuple[Step, ...]
    word: Span
    key: str | None = None
    siblings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Level:
    column: int
    step: Step
    start: int  # in its line
    value: int  # where the value of a key begins


def place_at(text: str, offset: int) -> YamlPlace | None:
    """Return the place at an offset; None in a comment."""
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[begin : end if end >= 0 else len(text)]
    at = offset - begin
    if "#" in line[:at] and re.search(r"(^|\s)#", line[:at]):
        return None
    levels = list(_parse_levels(line))
    word = _word_span(text, offset)
    last = levels[-1] if levels else None
    if isinstance(last, _Level) and isinstance(last.step, str):
        parents = [level.step for level in levels[:-1]]
        around = _find_path(text, begin, levels[0].column, is_key=isinstance(levels[0].step, str))
        if at >= last.value:
            return YamlPlace((*around, *parents, last.step), word, last.step)
        return YamlPlace((*around, *parents), word, None, _sibling_keys(text, begin, last.column))
    column = last.column if last else len(line) - len(line.lstrip(" ")) if line.strip() else at
    first = levels[0].column if levels else column
    around = _find_path(text, begin, first, is_key=not levels)
    inner = column + 2 if levels else column
    return YamlPlace((*around, *(level.step for level in levels)), word, None, _sibling_keys(text, begin, inner))


def find_place(text: str, path: tuple[Step, ...]) -> Span | None:
    """Return the span of the last key of a path of keys; list items are not counted."""
    key_path = [step for step in path if step != ITEM]
    start = 0
    for line in text.split("\n"):
        for level in _parse_levels(line):
            if level.step == key_path[-1]:
                parent_path = _find_path(text, start, level.column, is_key=True)
                if [step for step in parent_path if step != ITEM] == key_path[:-1]:
                    begin = start + level.start
                    return Span(begin, begin + len(str(level.step)))
        start += len(line) + 1
    return None


def _parse_levels(line: str) -> Iterator[_Level]:
    """Yield the dashes and the key with which a line begins."""
    at = len(line) - len(line.lstrip(" "))
    while line.startswith("- ", at) or line[at:] == "-":
        yield _Level(at, ITEM, at, at + 1)
        at += 1
        at += len(line[at:]) - len(line[at:].lstrip(" "))
    match = _KEY.match(line, at)
    if match and match["key"]:
        yield _Level(at, match["key"].strip(), match.start("key"), match.end())


def _find_path(text: str, begin: int, column: int, *, is_key: bool) -> tuple[Step, ...]:
    """Return the steps around the content of a column in the line that begins at `begin`."""
    steps: list[Step] = []
    for line in _lines_above(text, begin):
        for level in reversed(list(_parse_levels(line))):
            above = level.column < column or (level.step != ITEM and not is_key and level.column == column)
            if above:
                steps.append(level.step)
                column, is_key = level.column, level.step != ITEM
        if column == 0 and is_key:
            break
    return tuple(reversed(steps))


def _sibling_keys(text: str, begin: int, column: int) -> tuple[str, ...]:
    end = text.find("\n", begin)
    above = _keys_in(_lines_above(text, begin), column, is_above=True)
    below = _keys_in(iter(text[end + 1 :].split("\n")) if end >= 0 else iter(()), column, is_above=False)
    return (*above, *below)


def _keys_in(lines: Iterator[str], column: int, *, is_above: bool) -> Iterator[str]:
    for line in lines:
        levels = list(_parse_levels(line))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key = next((level.step for level in levels if level.column == column and isinstance(level.step, str)), None)
        first = levels[0].column if levels else len(line) - len(line.lstrip(" "))
        if first < column and not (is_above and key):
            return
        if key:
            yield key
        if first < column:
            return


def _lines_above(text: str, begin: int) -> Iterator[str]:
    end = begin - 1
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        yield text[start:end]
        end = start - 1


def _word_span(text: str, offset: int) -> Span:
    begin = offset
    while begin > 0 and _WORD.fullmatch(text[begin - 1]) and text[begin - 1]:
        begin -= 1
    match = _WORD.match(text, offset)
    return Span(begin, match.end() if match else offset)
