"""Tokens are no wider than what they are for."""

from __future__ import annotations

import pytest

from mergeplan.bot.github.permissions import token_permissions
from mergeplan_sandbox.state import APP_PERMISSIONS
from tests.bot.conftest import COLUMN, SHOP, Bench


def test_the_bots_token_may_do_what_its_table_says_and_gits_reads_one_repository(bench: Bench) -> None:
    """The sandbox's App was granted more, such as to write statuses."""
    bench.open(COLUMN)
    bench.idle()
    tokens = [token for token in bench.github.state.tokens.values() if token.kind == "installation"]
    of_git = [token for token in tokens if token.repositories is not None]
    (own,) = {token.permissions for token in tokens if token.repositories is None}

    assert own == tuple(sorted(token_permissions(APP_PERMISSIONS).items()))
    assert {"deployments", "members"} <= dict(own).keys()
    assert "statuses" not in dict(own)
    assert {token.permissions for token in of_git} == {(("contents", "read"), ("metadata", "read"))}
    assert {token.repositories for token in of_git} == {frozenset({SHOP})}


def test_what_is_optional_is_asked_for_where_it_was_granted() -> None:
    needed = token_permissions()

    assert token_permissions({"contents": "read", "members": "write"}) == {**needed, "members": "read"}
    assert token_permissions({"contents": "write", "administration": "write"}) == {**needed, "contents": "write"}


def test_an_app_that_was_granted_less_works_with_what_it_has(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was made before the bot needed a permission: its owner has to accept that first."""
    monkeypatch.delitem(APP_PERMISSIONS, "issues")
    bench.context.forge.owners.forget("ann")
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.conclusions(bench.head(number))["plan"] == "success"
