"""Comments, reactions, labels and reviews."""

import pytest
from github import Github, GithubException

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP


def test_the_bot_s_comment_is_edited_in_place(sandbox: Sandbox, bot: Github, number: int) -> None:
    comment = bot.get_repo(SHOP).get_pull(number).create_issue_comment("Planning")

    comment.edit("Planned")

    assert [(item.author, item.body) for item in sandbox.comments(SHOP, number)] == [("mergeplan[bot]", "Planned")]


def test_a_reader_edits_only_their_own_comments(sandbox: Sandbox, number: int) -> None:
    comment = sandbox.comment(SHOP, number, "Mine", author="wim")

    with pytest.raises(ApiError, match="write access"):
        sandbox.edit_comment(SHOP, comment, "Yours", author="rea")
    sandbox.edit_comment(SHOP, comment, "Ours", author="ann")


def test_a_deleted_comment_is_gone(sandbox: Sandbox, number: int) -> None:
    comment = sandbox.comment(SHOP, number, "Oops", author="wim")

    sandbox.delete_comment(SHOP, comment, author="wim")

    assert sandbox.comments(SHOP, number) == []


def test_the_same_reaction_twice_is_one(sandbox: Sandbox, bot: Github, number: int) -> None:
    comment = (
        bot.get_repo(SHOP).get_pull(number).get_issue_comment(sandbox.comment(SHOP, number, "/plan", author="wim"))
    )

    first, second = comment.create_reaction("eyes"), comment.create_reaction("eyes")

    assert first.id == second.id
    assert len(sandbox.comments(SHOP, number)[0].reactions) == 1


def test_an_issue_is_not_a_pull_request(sandbox: Sandbox, bot: Github) -> None:
    number = sandbox.open_issue(SHOP, "A question", author="rea")

    assert bot.get_repo(SHOP).get_issue(number).pull_request is None
    with pytest.raises(GithubException, match="404"):
        bot.get_repo(SHOP).get_pull(number)


def test_labels_come_and_go(sandbox: Sandbox, bot: Github, number: int) -> None:
    for name in ("urgent", "later"):
        sandbox.label(SHOP, number, name, author="ann")
    sandbox.label(SHOP, number, "urgent", author="ann", remove=True)

    assert [label.name for label in bot.get_repo(SHOP).get_pull(number).labels] == ["later"]


def test_reviews_stay_with_the_commit_that_they_were_of(sandbox: Sandbox, bot: Github, number: int) -> None:
    reviewed = sandbox.pull_request(SHOP, number).head_sha
    sandbox.review(SHOP, number, "APPROVED", author="ann")
    sandbox.commit(SHOP, "more", {"x.sql": "1"}, "More", author="wim")
    sandbox.review(SHOP, number, "CHANGES_REQUESTED", author="ann")

    reviews = [
        (review.state, review.commit_id == reviewed) for review in bot.get_repo(SHOP).get_pull(number).get_reviews()
    ]

    assert reviews == [("APPROVED", True), ("CHANGES_REQUESTED", False)]


def test_nobody_approves_their_own_pull_request(sandbox: Sandbox, number: int) -> None:
    with pytest.raises(ApiError) as refused:
        sandbox.review(SHOP, number, "APPROVED", author="wim")
    assert refused.value.status == 422


def test_a_dismissed_review_says_so(sandbox: Sandbox, bot: Github, number: int) -> None:
    review = sandbox.review(SHOP, number, "APPROVED", author="ann")
    pull = bot.get_repo(SHOP).get_pull(number)

    sandbox.dismiss_review(SHOP, number, review, author="ann")

    assert [review.state for review in pull.get_reviews()] == ["DISMISSED"]
