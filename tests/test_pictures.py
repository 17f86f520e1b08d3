"""The documentation's pictures show what there is."""

from __future__ import annotations

import json
import re

import pytest

from tests.pictures import FOLDER, MADE, digests, draw, read_source


@pytest.mark.parametrize("name", json.loads(MADE.read_text(encoding="utf-8")))
def test_no_picture_is_older_than_what_it_shows(name: str) -> None:
    assert json.loads(MADE.read_text(encoding="utf-8"))[name] == digests(read_source())[name], "make pictures"


def test_every_picture_is_drawn_by_the_command() -> None:
    pictures = {path.name for path in FOLDER.iterdir() if path.suffix in (".png", ".svg")}

    assert pictures == json.loads(MADE.read_text(encoding="utf-8")).keys() >= draw(read_source()).keys()


def test_a_drawn_terminal_loads_nothing() -> None:
    drawn = (FOLDER / "terminal-plan.svg").read_text(encoding="utf-8")

    assert "@font-face" not in drawn
    assert not re.search(r"(?:src|href)=|url\((?!#)", drawn)
