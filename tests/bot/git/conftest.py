"""A sandbox with one repository of two files, and its mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.bot.git.checkout import Checkout
from mergeplan_sandbox.server import Sandbox

SHOP = "ann/shop"


@pytest.fixture(name="github")
def _github(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "github") as sandbox:
        sandbox.add_user("ann")
        sandbox.create_repository(SHOP, {"a.sql": "SELECT 1\n", "b.sql": "SELECT 1\n"}, private=True)
        sandbox.install_app(SHOP)
        yield sandbox


@pytest.fixture(name="checkout")
def _checkout(github: Sandbox, tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "home", SHOP, github.clone_url(SHOP), lambda: github.installation_token(SHOP))
    made.fetch("main")
    return made
