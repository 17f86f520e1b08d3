"""What is read of a config.py is what Python would make of it: random files are run here, beside a SQLMesh of paper."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.configuration import read_source
from tests.planner.python.config_code.running import run_here

HEAD = "import os\nfrom sqlmesh.core.config import Config, PlanConfig\nfrom os import environ as env\n"
ENVIRONMENT = {"X": "x", "N": "7"}
NAMES = ("a", "b", "c", "X", "str", "Config")
EXPRESSIONS = (
    "1", "'t'", "None", "True", "-2.5", "{n}", "{n}", "{n}", "[{e}, {e}]", "({e},)", "{{'k': {e}}}",
    "{{**{n}, 'k': {e}}}", "[*{n}]", "{e} + {e}", "{n} + {n}", "f'{{{n}}}-{{{n}!s}}'", "f'{{{e}}}'", "str({e})",
    "int({e})", "dict({n}, k={e})", "dict({n})", "list({n})", "{n}['k']", "{n}.copy()", "PlanConfig(k={e})",
    "PlanConfig(**{n})", "os.environ['X']", "env.get('X', 'd')", "os.getenv('NOT_SET', {e})", "int(os.environ['N'])",
    "{e} if {n} else {e}", "{n} or {e}", "[{n} for {n} in [{e}]]", "({n} := {e})", "(lambda {n}: {e})",
    "{n} | {{'k': {e}}}", "len([{n}])", "{n} == {e}", "not {n}", "bool({e})", "float({e})", "'%s' % {n}",
    "{n}.upper()", "sorted([1, 2])", "[x.update(k={e}) for x in [{n}]]",
)  # fmt: skip
STATEMENTS = (
    "{n} = {e}", "{n} = {e}", "{n} = {e}", "{n} = {n}", "{n} = {n} = {e}", "{n}, {n} = {e}, {e}", "{n}: int = {e}",
    "{n}: int", "{n} += {e}", "{n}['k'] = {e}", "{n}.update(k={e})", "{n}.append({e})", "{n}.clear()", "del {n}",
    "print({n})", "if {n}:\n    {s}", "if {n}:\n    {s}\nelse:\n    {s}", "for {n} in [{n}]:\n    {s}",
    "for {n} in []:\n    {s}", "while False:\n    {s}", "try:\n    {s}\nexcept Exception as {n}:\n    {s}",
    "try:\n    {s}\nfinally:\n    {s}", "def {n}({n}={e}):\n    {n} = 9", "def f():\n    global {n}\n    {n} = {e}",
    "f()", "class {n}:\n    {s}", "class K({n}): pass", "import os as {n}", "from os import environ as {n}",
    "env['X'] = 'y'", "os.environ.update(X='y')", "env.pop('X')", "if __name__ == '__main__':\n    {s}",
    "with open(os.devnull) as {n}:\n    {s}", "match {n}:\n    case {n}:\n        {s}", "assert {n}", "import {n}",
    "try:\n    from os import {n}\nexcept ImportError:\n    pass", "exec({e})",
)  # fmt: skip


def write_file(random: Random) -> str:
    """A file of some statements, and the configuration that they make."""

    def expression(depth: int) -> str:
        form = random.choice(EXPRESSIONS if depth else EXPRESSIONS[:8])
        return fill_form(form, depth)

    def statement(depth: int) -> str:
        return fill_form(random.choice(STATEMENTS if depth and random.random() < 0.4 else STATEMENTS[:8]), depth)

    def fill_form(form: str, depth: int) -> str:
        while "{n}" in form:
            form = form.replace("{n}", random.choice(NAMES[:3] if random.random() < 0.9 else NAMES), 1)
        while "{e}" in form:
            form = form.replace("{e}", expression(depth - 1), 1) if depth else form.replace("{e}", "2", 1)
        while "{s}" in form:
            line = next(line for line in form.split("\n") if "{s}" in line)
            indent = line[: len(line) - len(line.lstrip())]
            form = form.replace("{s}", statement(depth - 1).replace("\n", f"\n{indent}") if depth else "pass", 1)
        return form.replace("{{", "{").replace("}}", "}")

    lines = ["a = {'k': 1}", "b = ['t']", "c = 't'", *(statement(2) for _ in range(random.randint(1, 5)))]
    return HEAD + "\n".join(
        [
            *lines,
            f"config = Config(a={random.choice(NAMES[:3])})",
            *([statement(1)] if random.random() < 0.3 else []),
            "",
        ]
    )


class Made(dict[str, Any]):
    """What a class of SQLMesh is made with."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(keywords)


@contextmanager
def paper() -> Iterator[None]:
    """A SQLMesh whose classes keep what they are given."""
    module = ModuleType("sqlmesh.core.config")
    vars(module).update(Config=Made, PlanConfig=Made)
    packages = {"sqlmesh": ModuleType("sqlmesh"), "sqlmesh.core": ModuleType("sqlmesh.core"), module.__name__: module}
    with patch.dict(sys.modules, packages), patch.dict("os.environ", ENVIRONMENT):
        yield


def lists_for_tuples(value: object) -> object:
    """A value with lists in place of tuples, as YAML has them."""
    if isinstance(value, dict):
        return {key: lists_for_tuples(child) for key, child in value.items()}
    return [lists_for_tuples(child) for child in value] if isinstance(value, list | tuple) else value


@pytest.mark.prove
@settings(max_examples=1500, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_what_is_read_is_what_python_makes(random: Random) -> None:
    text = write_file(random)
    try:
        read = read_source(run_here(text, ENVIRONMENT), ENVIRONMENT).value
    except ProjectError:
        return

    with paper():
        made: dict[str, Any] = {"__name__": "config"}
        try:
            exec(compile(text, "config.py", "exec"), made)  # noqa: S102 - written above
        except Exception:
            return

    assert repr(read) == repr(lists_for_tuples(dict(made["config"]))), text
