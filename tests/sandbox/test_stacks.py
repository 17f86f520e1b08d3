"""Stacks of pull requests: each into the branch of the one below; merged one by one, or several at once."""

from __future__ import annotations

import httpx
import pytest
from githubkit_schemas.latest import models

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP


@pytest.fixture(name="layers")
def _layers(sandbox: Sandbox) -> list[int]:
    """Three pull requests, each of one file, into `main` and into each other."""
    numbers, base = list[int](), "main"
    for name in ("one", "two", "three"):
        sandbox.create_branch(SHOP, name, base, author="wim")
        sandbox.commit(SHOP, name, {f"{name}.sql": "SELECT 1\n"}, name, author="wim")
        numbers.append(sandbox.open_pull_request(SHOP, name, base, name, author="wim"))
        base = name
    return numbers


def bases(sandbox: Sandbox, numbers: list[int]) -> list[str]:
    return [sandbox.pull_request(SHOP, number).base_ref for number in numbers]


def test_the_place_in_a_stack_is_of_github_s_type(sandbox: Sandbox, api: httpx.Client, layers: list[int]) -> None:
    number = sandbox.stack(SHOP, *layers, author="wim")

    pull = models.PullRequest.model_validate(api.get(f"/pulls/{layers[1]}").json())
    listed = models.PullRequestSimple.model_validate(api.get("/pulls").json()[0])
    assert isinstance(pull.stack, models.PullRequestStack) and isinstance(listed.stack, models.PullRequestStack)
    assert (pull.stack.number, pull.stack.size, pull.stack.position, pull.stack.base.ref) == (number, 3, 2, "main")


def test_what_goes_into_the_deleted_branch_of_a_merge_goes_where_the_merge_went(
    sandbox: Sandbox, layers: list[int]
) -> None:
    sandbox.merge(SHOP, layers[0], author="ann")
    assert bases(sandbox, layers) == ["main", "one", "two"]
    sandbox.delete_branch(SHOP, "one", author="ann")
    sandbox.delete_branch(SHOP, "two", author="ann")

    assert bases(sandbox, layers) == ["main", "main", "two"]
    assert [sandbox.pull_request(SHOP, number).state for number in layers] == ["closed", "closed", "closed"]


@pytest.mark.parametrize("method", ["merge", "squash"])
def test_a_part_of_a_stack_is_merged_at_once_and_the_rest_is_rebased(
    sandbox: Sandbox, layers: list[int], method: str
) -> None:
    sandbox.stack(SHOP, *layers, author="wim")
    tip = sandbox.merge_stack(SHOP, layers[1], author="ann", method=method)  # type: ignore[arg-type]

    pulls = [sandbox.pull_request(SHOP, number) for number in layers]
    assert [pull.merged_at is not None for pull in pulls] == [True, True, False]
    assert (pulls[1].merge_commit_sha, pulls[2].base_ref) == (tip, "main")
    assert sandbox.read(SHOP, "two.sql") == sandbox.read(SHOP, "one.sql", "three") == "SELECT 1\n"


def test_a_stack_that_is_not_linear_is_not_merged(sandbox: Sandbox, layers: list[int]) -> None:
    sandbox.stack(SHOP, *layers, author="wim")
    sandbox.commit(SHOP, "one", {"one.sql": "SELECT 2\n"}, "More", author="wim")

    with pytest.raises(ApiError, match="rebased"):
        sandbox.merge_stack(SHOP, layers[2], author="ann")
    assert [sandbox.pull_request(SHOP, number).state for number in layers] == ["open"] * 3


def test_a_layer_is_judged_by_what_the_trunk_requires(sandbox: Sandbox, layers: list[int]) -> None:
    sandbox.require_checks(SHOP, "main", ["mergeplan / plan"])
    sandbox.stack(SHOP, *layers, author="wim")

    with pytest.raises(ApiError, match="mergeplan / plan"):
        sandbox.merge_stack(SHOP, layers[2], author="ann")
