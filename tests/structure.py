"""Measures the structure of the product: `python -m tests.structure` prints the numbers.

`tests/test_structure.py` limits them. A helper is alone if it is private, has at most four lines and is named once in
its file.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from mergeplan.planner.model.model import PROPERTIES, Model
from tests.language import PACKAGES, ROOT

SMALL = 4  # lines of a helper
DBT = ("planner.project.dbt", "planner.parsing.files.dbt", "planner.python.dbt_code")


def product_files() -> Iterator[tuple[str, str]]:
    """Every file of the product: its path from the root, and its text."""
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def folder_lines() -> Counter[str]:
    """The lines of each part of the product, by its folder: `planner/parsing`, or `bot` for files of no folder."""
    lines: Counter[str] = Counter()
    for path, text in product_files():
        lines["/".join(path.split("/")[:-1][:2])] += text.count("\n")
    return lines


def outside_importers(*modules: str) -> list[str]:
    """The files that import something of these modules and are no part of them."""
    folders = tuple(module.replace(".", "/") for module in modules)
    return [
        path
        for path, text in product_files()
        if not path.startswith(folders) and any(f"from mergeplan.{module}" in text for module in modules)
    ]


def lone_helpers() -> list[str]:
    """The small private functions that their file names once, as `path:line name`."""
    helpers = []
    for path, text in product_files():
        tree = ast.parse(text)
        names = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        helpers += [
            f"{path}:{node.lineno} {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith("_")
            and not (node.name.startswith("__") or node.decorator_list)
            and names[node.name] == 1
            and count_body_lines(node) <= SMALL
        ]
    return helpers


def count_body_lines(function: ast.FunctionDef) -> int:
    """The lines of a function without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]  # a parsed node has its end


def main() -> None:
    """Print every number."""
    for folder, lines in folder_lines().most_common():
        sys.stdout.write(f"{lines:8} lines of {folder}\n")
    for name, number in (
        ("lines of product code", folder_lines().total()),
        ("fields of Model", len(fields(Model))),
        ("of them rows of the table of properties", len(PROPERTIES)),
        ("files outside bot/github that import of it", len(outside_importers("bot.github"))),
        ("files outside its folders that import of dbt's reader", len(outside_importers(*DBT))),
        ("private helpers of at most four lines that are named once", len(lone_helpers())),
    ):
        sys.stdout.write(f"{number:8} {name}\n")


if __name__ == "__main__":
    main()
