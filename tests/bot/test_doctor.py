"""doctor's line about GitHub: who the bot is there, and never its key."""

from __future__ import annotations

import pytest

from mergeplan.bot.doctor import check_github


def test_a_key_that_is_none_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_GITHUB_APP_ID", "7")
    monkeypatch.setenv("MERGEPLAN_GITHUB_PRIVATE_KEY", "sesame sesame")

    check = next(check_github())

    assert (check.what, check.ok) == ("github", False)
    assert "sesame" not in check.text and "PEM" in check.text


def test_without_a_login_github_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERGEPLAN_GITHUB_APP_ID", raising=False)
    monkeypatch.delenv("MERGEPLAN_GITHUB_TOKEN", raising=False)

    assert next(check_github()).ok is None
