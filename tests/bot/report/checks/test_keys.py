"""The key of a check on GitHub."""

from __future__ import annotations

from mergeplan.bot.report.checks.keys import check_key, pull_of_key


def test_a_checks_key_names_its_pull_request() -> None:
    assert pull_of_key(check_key("ann/shop", 7, "mergeplan / plan")) == (7, "")
    assert [pull_of_key(text) for text in ("", "7", "mergeplan:0:plan", "mergeplan:7:plan\n", "x:7:plan")] == [
        (0, "")
    ] * 5
