"""Repositories that move: what GitHub answers under their earlier name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from mergeplan_sandbox.server import Sandbox
from tests.sandbox.conftest import SHOP

STORE = "ann/store"


@pytest.fixture(name="moved")
def _move(sandbox: Sandbox) -> Sandbox:
    sandbox.move_repository(SHOP, STORE)
    return sandbox


def test_a_call_by_the_earlier_name_is_sent_on_by_the_number(moved: Sandbox) -> None:
    headers = {"Authorization": f"token {moved.installation_token(STORE)}"}
    answer = httpx.get(f"{moved.url}/repos/{SHOP}/pulls?state=open", headers=headers)
    number = moved.state.repositories[STORE].id

    assert (answer.status_code, answer.headers["location"]) == (
        301,
        f"{moved.url}/repositories/{number}/pulls?state=open",
    )
    assert httpx.post(f"{moved.url}/repos/{SHOP}/check-runs", headers=headers).status_code == 307
    by_number = httpx.get(f"{moved.url}/repositories/{number}", headers=headers).json()
    assert (by_number["id"], by_number["full_name"]) == (number, STORE)


def test_git_clones_by_the_earlier_name(moved: Sandbox, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", moved.clone_url(SHOP), str(tmp_path / "clone")], check=True)
    assert (tmp_path / "clone/models/orders.sql").is_file()


def test_the_earlier_name_is_free_for_another_repository(moved: Sandbox) -> None:
    moved.create_repository(SHOP, {"b.sql": "SELECT 2"})
    headers = {"Authorization": f"token {moved.add_user('ann')}"}
    answer = httpx.get(f"{moved.url}/repos/{SHOP}", headers=headers).json()
    assert answer["id"] == moved.state.repositories[SHOP].id != moved.state.repositories[STORE].id


def test_the_app_keeps_a_renamed_repository_and_no_transferred_one(moved: Sandbox) -> None:
    assert moved.state.installation_of(moved.state.repositories[STORE])
    moved.move_repository(STORE, "acme/shop")
    assert not moved.state.installation_of(moved.state.repositories["acme/shop"])
