"""The examples in docstrings show what the code returns."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "planner": "mergeplan.planner",
    "bot": "mergeplan.bot",
    "mergeplan/dagster": "mergeplan.dagster",
    "sandbox/mergeplan_sandbox": "mergeplan_sandbox",
}
EXAMPLE = "\n    >>> "


def modules() -> list[str]:
    """The modules of the product that have examples."""
    return [
        ".".join((package, *path.relative_to(ROOT / folder).with_suffix("").parts)).removesuffix(".__init__")
        for folder, package in PACKAGES.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "/example/" not in path.as_posix() and EXAMPLE in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", modules())
def test_an_example_shows_what_is_returned(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = doctest.testmod(import_module(name))

    assert results.attempted > 0
    assert not results.failed, capsys.readouterr().out
