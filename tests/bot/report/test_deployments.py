"""Deployments on the sandbox, from the plan to the rollback. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench

SHOWN = {**PROJECT, "config.yaml": "gateways: {}\ncicd_bot:\n  deployments: true\n"}


def states(bench: Bench) -> dict[tuple[str, str], list[str]]:
    """The states that each environment's deployment went through, by environment and commit."""
    deployments = bench.github.state.repositories[SHOP].deployments.values()
    return {
        (deployment.environment, deployment.sha): [status.state for status in deployment.statuses]
        for deployment in deployments
    }


def test_an_environment_and_prod_are_deployments_with_their_states_and_links(copy_bench: Callable[..., Bench]) -> None:
    """Built, dropped at the merge, promoted, rolled back; each leads to the plan comment."""
    bench = copy_bench(SHOWN)
    number = bench.open(COLUMN)
    bench.idle()
    head = bench.head(number)
    assert states(bench) == {("pr_1", head): ["success"]}
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.say(number, "/rollback", author="ann")

    merge = bench.record(number).promotion.merge_sha
    assert states(bench) == {("pr_1", head): ["success", "inactive"], ("prod", merge): ["success", "inactive"]}
    (first, *_) = bench.github.state.repositories[SHOP].deployments.values()
    assert first.statuses[0].environment_url.endswith(f"/pull/1#issuecomment-{bench.record(number).comment.id}")


@pytest.mark.parametrize("status", [403, 500])
def test_without_the_permission_all_else_works(copy_bench: Callable[..., Bench], status: int) -> None:
    """Refused for good, or failed in passing."""
    bench = copy_bench(SHOWN)
    bench.github.faults.fail("POST", "/deployments", status=status, times=2 if status == 500 else 50)
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert len(states(bench)) == (2 if status == 500 else 0)
