"""A line is carried out by the project that it means, and answered by one."""

from __future__ import annotations

import pytest

from mergeplan.bot.commands.command import Mistake
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.pulls.routing import ProjectFacts, check_project, target_projects

SHOP = ProjectFacts("ann/shop", "shop", True, ("shop.orders", "shop.totals"))
ADS = ProjectFacts("ann/shop~ads", "ads", True, ("ads.clicks",))
IDLE = ProjectFacts("ann/shop~idle", "idle", False)


def answering(text: str, *projects: ProjectFacts) -> list[str]:
    """The folders of those who answer."""
    (asked,) = read_commands(text)
    return [project.folder for project in projects if project.key in target_projects(asked, projects)]


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("/plan", ["shop", "ads"]),
        ("/plan --project ads", ["ads"]),
        ("/plan --project idle", ["idle"]),
        ("/categorize ads.clicks breaking", ["ads"]),
        ("/categorize orders breaking", ["shop"]),
        ("/lineage ads.clicks.at", ["ads"]),
        ("/restate ads.clicks+", ["ads"]),
        ("/categorize nowhere breaking", ["shop", "ads"]),
        ("/categorize breaking -p shop", ["shop"]),
        ("/help", ["shop"]),
        ("/plann", ["shop"]),
    ],
)
def test_a_line_is_for_the_projects_that_it_means(text: str, folders: list[str]) -> None:
    assert answering(text, SHOP, ADS, IDLE) == folders


def test_where_none_is_touched_the_first_answers() -> None:
    assert answering("/status", IDLE, ProjectFacts("ann/shop~b", "b", False)) == ["idle"]


def test_an_unknown_project_is_answered_once_and_changes_nothing() -> None:
    (asked,) = read_commands("/plan --project adds")
    mistake = check_project(asked, (SHOP, ADS))
    assert target_projects(asked, (SHOP, ADS)) == (SHOP.key,)
    assert isinstance(mistake, Mistake)
    assert "`shop`, `ads`" in mistake.instead


def test_a_condition_may_speak_of_a_project() -> None:
    (asked,) = read_commands("/diff ads.clicks --project=ads --where flag = '--project shop'")
    assert not isinstance(asked, Mistake)
    assert (asked.project, asked.model, asked.where) == ("ads", "ads.clicks", "flag = '--project shop'")
