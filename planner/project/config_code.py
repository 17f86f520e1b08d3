"""A project whose configuration is Python: what its author writes in its place.

It is read and never run. What rules a plan (where it computes, with which settings, who may command) must be the same
for whoever reads it, and a pull request may bring code.
"""

from __future__ import annotations

import ast

from planner.errors import Place, ProjectError


def config_is_code(text: str) -> ProjectError:
    """The error of a project with a config.py and no config.yaml, at the line where it makes its configuration."""
    line, keys = _configured(text)
    message = "config.py is code, and mergeplan runs none to learn how a project is configured."
    named = f" with the keys that it gives: {', '.join(f'`{key}`' for key in keys)}" if keys else ""
    hint = (
        f"Write a config.yaml{named}. A value that config.py computes is read from the environment there: "
        "`{{ env_var('NAME') }}`."
    )
    return ProjectError(message, place=Place("config.py", line), hint=hint)


def _configured(text: str) -> tuple[int, tuple[str, ...]]:
    """The line of `Config(...)`, and the keywords of the call."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return 1, ()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == "Config":
            return node.lineno, tuple(each.arg for each in node.keywords if each.arg)
    return 1, ()


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
