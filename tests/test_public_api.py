"""What others build on changes only where somebody decides so: tests/public_api.txt is all of it."""

from __future__ import annotations

from tests.public_api import SNAPSHOT, render_api

DECIDE = (
    "The public API changed. If that is meant, run `python -m tests.public_api`, read the difference, and follow"
    " docs/development/deprecations.md for what is removed or renamed."
)


def test_the_public_api_is_the_one_that_was_agreed_on() -> None:
    assert render_api() == SNAPSHOT.read_text(encoding="utf-8"), DECIDE


def test_every_part_of_the_public_api_is_listed() -> None:
    sections = SNAPSHOT.read_text(encoding="utf-8").split("\n# ")

    assert len(sections) == 7
    assert [section.splitlines()[0] for section in sections if len(section.splitlines()) < 4] == []
