"""Tokens are no wider than what they are for."""

from __future__ import annotations

import pytest

from bot.github.permissions import token_permissions
from bot.sandbox.state import APP_PERMISSIONS
from tests.bot.conftest import COLUMN, SHOP, Bench


def test_the_bots_token_may_do_what_its_table_says_and_gits_reads_one_repository(bench: Bench) -> None:
    """The sandbox's App was granted more: deployments, statuses, writing contents."""
    bench.open(COLUMN)
    bench.idle()
    given = [each for each in bench.github.state.tokens.values() if each.kind == "installation"]
    of_git = [each for each in given if each.repositories is not None]

    assert {each.permissions for each in given if each.repositories is None} == {
        tuple(sorted(token_permissions().items()))
    }
    assert {each.permissions for each in of_git} == {(("contents", "read"), ("metadata", "read"))}
    assert {each.repositories for each in of_git} == {frozenset({SHOP})}


def test_an_app_that_was_granted_less_works_with_what_it_has(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was made before the bot needed a permission: its owner has to accept that first."""
    monkeypatch.delitem(APP_PERMISSIONS, "issues")
    bench.context.github.owners.forget("ann")
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.conclusions(bench.head(number))["plan"] == "success"
