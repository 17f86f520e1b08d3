"""Every regular expression of the code, and texts that make a slow one slow."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.limits import limit_resources

ROOT = Path(__file__).parent.parent
METHODS = ("match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split")
THROUGH_A_TABLE = {"_JARS", "_LISTS"}  # that calls their `fullmatch`
ANYWHERE = {"search", "sub", "subn", "findall", "finditer", "split"}
FEW, MANY = " a0", " \na0_.'\"`-/\\(#@{[,;:"  # what is repeated, beside what the pattern itself repeats
PARSER: Any = import_module("re._parser")
SHORT, LONG = 1_000, 4_000  # characters
EXPONENTIAL = 28  # characters after which such a pattern takes seconds
MOST_SECONDS = 0.6


@dataclass(frozen=True)
class UsedPattern:
    """A regular expression, where it is written, and whether it is looked for anywhere in a text."""

    where: str
    text: str
    flags: int
    anywhere: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.text, self.flags)

    def run(self, text: str) -> None:
        """Use it as the code does."""
        if self.anywhere:
            for _ in self.pattern.finditer(text):
                pass
        else:
            self.pattern.fullmatch(text)
            self.pattern.match(text)


def used_patterns(*folders: str) -> Iterator[UsedPattern]:
    """The patterns of these folders: those that are compiled, by their names, and those that are written in a call."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text()) for path in files if "migrations" not in path.parts}
    everywhere = _uses(trees.values())
    for path, tree in trees.items():
        where = str(path.relative_to(ROOT))
        name = ".".join(("mergeplan", *path.relative_to(ROOT).with_suffix("").parts))
        module = import_module(name.removeprefix("mergeplan.sandbox."))
        own = _uses([tree])
        for name in _names(tree):
            for pattern in _patterns_in(getattr(module, name, None)):
                methods = (
                    {"fullmatch"} if name in THROUGH_A_TABLE else own.get(name) or everywhere.get(name) or ANYWHERE
                )
                yield UsedPattern(f"{where}:{name}", pattern.pattern, pattern.flags, bool(methods & ANYWHERE))
        yield from _inline(where, tree)


def _uses(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Name of a pattern -> the methods that are called on it."""
    attributes: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
                attributes.setdefault(node.value.id, set()).add(node.attr)
    return attributes


def _names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    """The patterns that a constant is, or holds."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _patterns_in([getattr(value, part.name) for part in fields(value)])
    elif isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _patterns_in(part)


def _inline(where: str, tree: ast.Module) -> Iterator[UsedPattern]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args:
            pattern = _text(node.args[0])
            if pattern is not None:
                yield UsedPattern(f"{where}:{node.lineno}", pattern, _flags(node), node.func.attr in ANYWHERE)


def _text(node: ast.expr) -> str | None:
    """The text of a pattern; a part of it that is computed stands as a word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "abc" for part in node.values)
    return None


def _flags(call: ast.Call) -> int:
    arguments = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    parts = [part for argument in arguments for part in ast.walk(argument)]
    names = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    return sum(int(getattr(re, name)) for name in names & {"IGNORECASE", "DOTALL", "MULTILINE", "M", "ASCII"})


def slow_text(pattern: UsedPattern, characters: str) -> str:
    """What makes the pattern take more than the time that a text's length explains; '' when nothing does."""
    for before, pump, after in _attacks(pattern.text, pattern.flags, characters):
        make = lambda size: before + pump * (size // len(pump)) + after  # noqa: B023, E731
        if _seconds(pattern, make(EXPONENTIAL)) > 0.5:
            return f"{before!r} + {pump!r} * {EXPONENTIAL} + {after!r}"
        if _seconds(pattern, make(LONG)) > 0.0015:
            times = [min(_seconds(pattern, make(size)) for _ in range(9)) for size in (SHORT, LONG)]
            if times[1] > 0.0015 and times[1] > 9 * times[0]:  # 4 times as long: 16 times for a square
                return f"{before!r} + {pump!r} * n + {after!r}"
    return ""


def _seconds(pattern: UsedPattern, text: str) -> float:
    """The processor's time that it takes, infinite where it was ended: two clocks need not agree on when that was."""
    started = process_time()
    try:
        with limit_resources(ProjectError, seconds=MOST_SECONDS):
            pattern.run(text)
    except ProjectError:
        return inf
    return process_time() - started


@cache
def _attacks(text: str, flags: int, characters: str) -> tuple[tuple[str, str, str], ...]:
    """What stands before a part that repeats, what repeats it, and what comes after and does not fit."""
    tree = PARSER.parse(text, flags)
    attacks = []
    for before, body, rest in _repeats(list(tree)):
        pumps = dict.fromkeys([_sample(body), *characters])
        attacks += [(before, pump, after) for pump in pumps if pump for after in ("\x00", f"{rest}\x00")]
    return tuple(dict.fromkeys(attacks))


def _repeats(items: list[Any], before: str = "") -> Iterator[tuple[str, list[Any], str]]:
    for index, (kind, argument) in enumerate(items):
        rest = _sample(items[index + 1 :])
        for body, most in _bodies(str(kind), argument):
            if most > 99:
                yield before, body, rest
            yield from ((start, inner, f"{after}{rest}") for start, inner, after in _repeats(body, before))
        before += _sample([(kind, argument)])


def _bodies(kind: str, argument: Any) -> list[tuple[list[Any], int]]:
    if kind.endswith("REPEAT"):
        return [(list(argument[2]), int(argument[1]) if argument[1] != PARSER.MAXREPEAT else sys.maxsize)]
    if kind == "SUBPATTERN":
        return [(list(argument[3]), 0)]
    if kind == "BRANCH":
        return [(list(branch), 0) for branch in argument[1]]
    if kind == "ATOMIC_GROUP":
        return [(list(argument), 0)]
    if kind in ("ASSERT", "ASSERT_NOT"):
        return [(list(argument[1]), 0)]
    return []


def _sample(items: list[Any]) -> str:
    """A short text that fits the parts of a pattern."""
    return "".join(_one(str(kind), argument) for kind, argument in items)


def _one(kind: str, argument: Any) -> str:
    match kind:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return "a" if argument != ord("a") else "b"
        case "ANY":
            return "a"
        case "IN":
            return _argument_text(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _sample(list(argument[2])) * max(1, min(int(argument[0]), 50))
        case "SUBPATTERN":
            return _sample(list(argument[3]))
        case "BRANCH":
            return _sample(list(argument[1][0]))
        case "ATOMIC_GROUP":
            return _sample(list(argument))
        case _:
            return ""


def _argument_text(argument: Any) -> str:
    negated = any(str(kind) == "NEGATE" for kind, _ in argument)
    for character in "a0 _.'\"-/\\(#@{[,;:\nAZ\ue000\ue001~*":
        fits = any(_fits(str(kind), value, character) for kind, value in argument if str(kind) != "NEGATE")
        if fits != negated:
            return character
    return "a"


def _fits(kind: str, value: Any, character: str) -> bool:
    if kind == "LITERAL":
        return value == ord(character)
    if kind == "RANGE":
        return bool(value[0] <= ord(character) <= value[1])
    classes = {"CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w", "CATEGORY_SPACE": r"\s",
               "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_NOT_WORD": r"\W", "CATEGORY_NOT_SPACE": r"\S"}  # fmt: skip
    return re.fullmatch(classes[str(value)], character) is not None
