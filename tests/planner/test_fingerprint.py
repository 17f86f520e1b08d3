"""A fingerprint is what it was in every earlier version: another one makes users compute their tables anew."""

from __future__ import annotations

import pytest

from .fingerprints import make_pins, read_pins

PINS = read_pins()


@pytest.mark.parametrize("name", PINS)
def test_a_model_keeps_its_fingerprint_and_version(name: str) -> None:
    assert make_pins()[name] == PINS[name]


def test_every_property_has_its_fingerprint_written_down() -> None:
    assert make_pins().keys() <= PINS.keys(), "run `python -m tests.planner.fingerprints`, which adds the new lines"
