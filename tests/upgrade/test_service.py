"""What the service of a release remembered is there, and its jobs are worked off."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from mergeplan.bot.context import BotContext
from mergeplan.bot.records import Prod, PullState
from mergeplan.bot.service.serve import build_context
from mergeplan.bot.service.worker import Worker
from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import READER, SHOP, settings_for, until
from tests.upgrade import story
from tests.upgrade.conftest import Release

CATEGORY = "/categorize non-breaking: `shop.totals` is taken as Non-breaking."


@pytest.fixture(name="github")
def _github(tmp_path: Path) -> Iterator[Sandbox]:
    """GitHub as it was when the release was replaced, without what the bot wrote."""
    with Sandbox(tmp_path / "github") as github:
        story.set_scene(github)
        story.open_pull(github, 1)
        story.merge_first(github)
        story.open_pull(github, 2)
        story.open_pull(github, 3)
        yield github


@pytest.fixture(name="context")
def _context(github: Sandbox, release: Release, tmp_path: Path) -> Iterator[BotContext]:
    """What a service of this version works with, on a release's database."""
    command = github.comment(SHOP, 2, "/plan", author="wim")
    release.load("bot", {**story.commits(github), str(story.COMMAND): str(command)})
    settings = settings_for(github, tmp_path / "home", state_url=SecretStr(release.url))
    (settings.home / SHOP).mkdir(parents=True)
    shutil.copy(release.folder / "bot/scripted.json", settings.home / SHOP)
    context = build_context(settings)
    context.reader = READER
    yield context
    context.inbox.close()


def test_pull_requests_prod_decisions_and_what_waits_are_as_they_were(context: BotContext) -> None:
    inbox = context.inbox
    prod = inbox.prods.get(SHOP)

    assert (prod.state, prod.revision) == (Prod.READY, 2)
    assert [inbox.pulls.get(SHOP, number).state for number in (1, 2)] == [PullState.PROMOTED, PullState.PLANNED]
    assert CATEGORY in [what for _, _, what, _ in inbox.decisions.list_decisions(SHOP, 2)]
    assert [row.body for row in inbox.commands.unseen()] == ["/plan"]


def test_what_waited_is_worked_off_and_a_merge_is_promoted(context: BotContext, github: Sandbox) -> None:
    inbox, worker = context.inbox, Worker(context)
    worker.start()
    try:
        until(lambda: plan_of(github, 3), what="the plan of #3")
        until(lambda: not inbox.commands.open(SHOP, 2), what="the answer to /plan")
        assert "Non-breaking" in plan_of(github, 2)
        github.merge(SHOP, 2, author="ann")
        worker.sweep()
        until(lambda: inbox.pulls.get(SHOP, 2).state is PullState.PROMOTED, what="the promotion of #2")
    finally:
        worker.stop()

    assert inbox.prods.get(SHOP).revision == 3


def plan_of(github: Sandbox, number: int) -> str:
    """The bot's plan comment, '' when there is none."""
    bodies = [comment.body for comment in github.comments(SHOP, number) if comment.author == github.bot_login]
    return next((body for body in bodies if "mergeplan:plan" in body), "")
