"""The files that a path in code can name, by the text that it ends with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mergeplan.planner.python.files.code_names import Item, Names, OtherName, OwnName, Value, chain_of
from mergeplan.planner.python.files.known_packages import BUFFERS, JOINS, OPENERS, PATHS, PATTERNS, REMOTE, SAME_PATH

SAME_PLACE = frozenset("resolve absolute expanduser as_posix".split())  # methods that return the same path
TO_PATH = SAME_PLACE | frozenset("joinpath with_name with_suffix with_stem relative_to cwd home".split())
LISTING = frozenset("iterdir glob rglob".split())
_DEEPEST = 20
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*):")
_SORTING = frozenset("sorted list tuple set reversed iter".split())
Ends = frozenset[str]
NO_FILE: Ends = frozenset()
ANY_TEXT: Ends = frozenset(("",))  # opens what one of the code's texts names, a file or a folder


@dataclass(frozen=True)
class PathNames:
    names: Names

    def ends(self, value: Value, depth: int = 0) -> Ends | None:
        """Return texts or patterns (`*.csv`), one of which ends the path; None if it may be any path.

        A path that is read over a network, or was opened before, has no ends.
        """
        if value is None or depth > _DEEPEST:
            return None
        if isinstance(value, Item):
            return self._item_ends(value, depth)
        match value:
            case ast.Constant(value=text):
                return _text_ends(text) if isinstance(text, str) else NO_FILE if text is None else None
            case ast.Name() | ast.Attribute() if (chain := chain_of(value)) and not self._is_path_attribute(value):
                if chain == ["__file__"] and not self.names.is_bound("__file__"):
                    return frozenset((self.names.module.path,))
                values = list(self._name_values(chain))
                return _union_ends(paths.ends(value, depth + 1) for paths, value in values) if values else None
            case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
                return self._concatenation_ends(value, depth)
            case ast.BinOp(op=ast.Div(), right=right):
                return self.ends(right, depth + 1)
            case ast.IfExp(body=one, orelse=other):
                return _union_ends(self.ends(part, depth + 1) for part in (one, other))
            case ast.BoolOp(values=parts):
                return _union_ends(self.ends(part, depth + 1) for part in parts)
            case ast.NamedExpr(value=inner):
                return self.ends(inner, depth + 1)
            case ast.Subscript(value=of):
                return self._item_ends(Item(of, 1), depth)
            case ast.Call():
                return self._call_ends(value, depth)
        return None

    def is_path(self, value: Value, depth: int = 0) -> bool:
        """Return True for a value that may be a `Path`, with which code can open files."""
        if value is None or depth > _DEEPEST:
            return False
        if isinstance(value, Item):
            of = _strip_sorting(value.of)
            if not (isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute)):
                return False
            return of.func.attr in LISTING and not self._other_names(of.func)
        match value:
            case ast.Call(func=function) if any(name in PATHS for name in self._other_names(function)):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in TO_PATH:
                return attr != "as_posix" and (self.is_path(inner, depth + 1) or self._is_path_class(inner))
            case ast.Attribute(value=inner, attr="parent" | "parents"):
                return self.is_path(inner, depth + 1)
            case ast.Subscript(value=ast.Attribute(attr="parents") as inner):
                return self.is_path(inner, depth + 1)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.is_path(left, depth + 1) or self.is_path(right, depth + 1)
            case ast.IfExp(body=one, orelse=other):
                return self.is_path(one, depth + 1) or self.is_path(other, depth + 1)
            case ast.BoolOp(values=parts):
                return any(self.is_path(part, depth + 1) for part in parts)
            case ast.NamedExpr(value=inner):
                return self.is_path(inner, depth + 1)
            case ast.Name() | ast.Attribute():
                return any(paths.is_path(value, depth + 1) for paths, value in self._name_values(chain_of(value)))
        return False

    def listing_ends(self, call: ast.Call, depth: int = 0) -> Ends | None:
        """Return texts that the results of a method that lists a folder match, or contain as a folder."""
        assert isinstance(call.func, ast.Attribute)
        match call.args:
            case [ast.Constant(value=str() as pattern)] if call.func.attr != "iterdir" and ".." not in pattern:
                return frozenset((pattern,)) if pattern.strip("*/.") or "*" in pattern else None
            case []:
                return self.ends(call.func.value, depth + 1)
        return None

    def _is_path_class(self, value: ast.expr) -> bool:
        return any(name in PATHS for name in self._other_names(value))

    def _is_path_attribute(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Attribute) and self.is_path(value.value)

    def _other_names(self, function: ast.expr) -> list[str]:
        chain = chain_of(function)
        return [name.dotted for name in self.names.meanings(chain) if isinstance(name, OtherName)] if chain else []

    def _name_values(self, chain: list[str]) -> Iterator[tuple[PathNames, Value]]:
        """Yield the values of a name, here or in the module of the project that defines it."""
        if len(chain) == 1 and chain[0] in self.names.value_bindings:
            yield from ((self, value) for value in self.names.value_bindings[chain[0]])
            return
        for name in self.names.meanings(chain) if chain else ():
            if isinstance(name, OwnName) and name.name and not name.rest:
                module = self.names.modules[name.module]
                paths = PathNames(Names(module.tree, module, self.names.modules))
                yield from ((paths, value) for value in paths.names.value_bindings.get(name.name, (None,)))

    def _call_ends(self, call: ast.Call, depth: int) -> Ends | None:
        dotted_names = self._other_names(call.func)
        if call.args and isinstance(call.args[-1], ast.Starred):
            return None
        if dotted_names:
            opened = all(name in BUFFERS or name in OPENERS for name in dotted_names)
            if opened or not call.args:
                return NO_FILE if opened else None
            if all(name in JOINS for name in dotted_names):
                return self.ends(call.args[-1], depth + 1)
            return self.ends(call.args[0], depth + 1) if all(name in SAME_PATH for name in dotted_names) else None
        match call:
            case ast.Call(func=ast.Name(id="str"), args=[path]) if not self.names.is_bound("str"):
                return self.ends(path, depth + 1)
            case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=[]) if attr in SAME_PLACE:
                return self.ends(inner, depth + 1)
            case ast.Call(func=ast.Attribute(attr="joinpath" | "with_name"), args=[*_, last]):
                return self.ends(last, depth + 1)
            case ast.Call(func=ast.Attribute(attr="with_suffix"), args=[ast.Constant(value=str() as suffix)]):
                return frozenset((f"*{_escape_glob(suffix)}",)) if suffix else None
            case ast.Call(func=ast.Attribute(attr="open")):
                return NO_FILE  # which is checked where it occurs
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as form), attr="format")):
                return _tail_ends(form, re.split(r"\{[^{}]*\}", form)[-1])
            case ast.Call(func=ast.Attribute(attr="var" | "blueprint_var"), args=[ast.Constant(), *default]):
                # the values of variables are among the texts that code is given
                return _union_ends((ANY_TEXT, *(self.ends(part, depth + 1) for part in default)))
        return None

    def _concatenation_ends(self, value: ast.expr, depth: int) -> Ends | None:
        match value:
            case ast.JoinedStr(values=parts):
                first = parts[0].value if parts and isinstance(parts[0], ast.Constant) else ""
                last = parts[-1].value if parts and isinstance(parts[-1], ast.Constant) else ""
                return _tail_ends(str(first), str(last))
            case ast.BinOp(left=ast.Constant(value=str() as form), op=ast.Mod()):
                return _tail_ends(form, re.split(r"%\W?\d*\.?\d*\w", form)[-1])
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=str() as last)):
                return _tail_ends(self._text_head(left, depth + 1), last)
            case ast.BinOp(left=left, op=ast.Add()):
                return NO_FILE if _is_remote(self._text_head(left, depth + 1)) else None
        return None

    def _text_head(self, value: Value, depth: int) -> str:
        match value:
            case ast.Constant(value=str() as text):
                return text
            case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
                return text
            case ast.BinOp(left=left, op=ast.Add()) if depth < _DEEPEST:
                return self._text_head(left, depth + 1)
            case ast.Name() if depth < _DEEPEST:
                heads = {paths._text_head(item, depth + 1) for paths, item in self._name_values(chain_of(value))}
                return heads.pop() if len(heads) == 1 else ""
        return ""

    def _item_ends(self, item: Item, depth: int) -> Ends | None:
        """Return the ends of items: of a sequence or a mapping that is written out, or of a folder's listing."""
        of = _strip_sorting(item.of)
        match of:
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return _union_ends(self.ends(part, depth + 1) for part in items)
            case ast.Dict(keys=keys, values=values):
                return _union_ends(self.ends(part, depth + 1) for part in [*(values if item.at == 1 else keys)])
            case ast.Call(func=ast.Attribute(value=mapping, attr="values"), args=[]):
                return self._item_ends(Item(mapping, 1), depth + 1)
            case ast.Call(func=function, args=[pattern, *_]) if PATTERNS.intersection(self._other_names(function)):
                return self.ends(pattern, depth + 1)
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in LISTING and item.at == -1:
                return self.listing_ends(of, depth)
            case ast.Name() | ast.Attribute() if depth < _DEEPEST:
                sequences = [(paths, of) for paths, of in self._name_values(chain_of(of)) if isinstance(of, ast.expr)]
                if not sequences or len(sequences) < len(list(self._name_values(chain_of(of)))):
                    return None
                return _union_ends(paths._item_ends(Item(of, item.at), depth + 1) for paths, of in sequences)
        return None


def _strip_sorting(value: ast.expr) -> ast.expr:
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in _SORTING
        and len(value.args) == 1
    ):
        value = value.args[0]
    return value


def _text_ends(text: str) -> Ends | None:
    scheme = _SCHEME.match(text)
    if scheme:
        return NO_FILE if _is_remote(text) else None
    return None if text.rstrip("/").rpartition("/")[2] in ("", ".", "..") else frozenset((text,))


def _tail_ends(head: str, tail: str) -> Ends | None:
    if _is_remote(head):
        return NO_FILE
    if _SCHEME.match(head) or tail.rpartition("/")[2] in ("", ".", ".."):
        return None
    _, slash, below = tail.partition("/")
    return frozenset((below,)) if slash else frozenset((f"*{_escape_glob(tail)}",))


def _is_remote(head: str) -> bool:
    scheme = _SCHEME.match(head)
    return bool(scheme and scheme[1].lower() in REMOTE and head[scheme.end() :].startswith("//"))


def _union_ends(many: Iterable[Ends | None]) -> Ends | None:
    every: Ends = NO_FILE
    for ends in many:
        if ends is None:
            return None
        every |= ends
    return every


def _escape_glob(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)
