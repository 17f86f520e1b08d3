"""Every text that the planner and the bot may show: `python -m tests.user_texts` lists them by file and line.

They are the strings of at least three words outside of docstrings, and the help of commands; `{…}` stands for a value.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.language import PACKAGES, ROOT

PAGES = ("planner/ui/", "mergeplan/planner", "mergeplan/bot")  # of a browser, and links
CODE = re.compile(r"\s*(?:SELECT|INSERT|CREATE|DROP|ALTER|DELETE|UPDATE|MERGE|SHOW|DESCRIBE|WITH)\b|\(\?|<\w")


@dataclass(frozen=True)
class UserText:
    place: str
    text: str


def user_texts() -> list[UserText]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    names = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return [text for name, path in names.items() if not name.startswith(PAGES) for text in _file_texts(name, path)]


def _file_texts(name: str, path: Path) -> Iterator[UserText]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {id(node) for node in _list_hidden(tree)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in hidden:
            text = _read_string(node)
            if " " in text.strip() and len(re.findall(r"[A-Za-z]{2,}", text)) > 2 and not CODE.match(text):
                yield UserText(f"{name}:{node.lineno}", " ".join(text.split()))


def _list_hidden(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield docstrings but those of commands, and the parts of f-strings, which are read as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from (part for child in ast.iter_child_nodes(node) for part in ast.walk(child))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            is_command = any("command" in ast.unparse(mark) for mark in getattr(node, "decorator_list", ()))
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and not is_command:
                yield first.value


def _read_string(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_string(part) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    return node.value if isinstance(node.value, str) else ""


if __name__ == "__main__":
    for shown in user_texts():
        sys.stdout.write(f"{shown.place}: {shown.text}\n")
