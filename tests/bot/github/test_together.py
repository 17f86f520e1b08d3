"""A comment and its checks in one call; and one by one where GitHub does not take that, with the same end."""

from __future__ import annotations

import pytest

from mergeplan.bot.forge.checks import CheckId, CheckRequest, CommentEdit
from mergeplan.bot.report.checks.check import CheckAnnotation, CheckView
from tests.bot.changing import change_record
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.bot.test_pull_requests import GREEN

VIEW = CheckView("mergeplan / plan", "A plan", "Its text")
MORE = {"models/orders.sql": "SELECT 1 AS id, 3 AS more\n"}


def graphql(bench: Bench) -> int:
    """How many calls of GraphQL were made."""
    return sum(call.path == "/graphql" for call in bench.github.calls)


def test_a_life_of_a_pull_request_is_under_forty_calls_and_twenty_writes(bench: Bench) -> None:
    """Opened, pushed to, categorised, merged; an answer that nothing has changed is free and does not count."""
    before = len(bench.github.calls)
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.commit(SHOP, "change", MORE, "Again", author="wim")
    bench.idle()
    bench.say(number, "/categorize orders breaking")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    calls = [call for call in bench.github.calls[before:] if call.status != 304]

    assert bench.conclusions(bench.head(number)) == GREEN
    assert len(calls) < 40
    assert sum(call.method != "GET" for call in calls) < 20


@pytest.mark.parametrize(("status", "asked"), [(404, 2), pytest.param(500, 4, marks=pytest.mark.prove)])
def test_without_graphql_all_is_written_one_by_one_and_it_is_not_asked_each_time(
    bench: Bench, status: int, asked: int
) -> None:
    """Once for all writes, and once for the commit of the merge."""
    bench.github.faults.fail("POST", "^/graphql$", status=status, times=1000)
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.conclusions(bench.head(number)) == GREEN
    assert "nothing was computed" in bench.plan(number)
    assert graphql(bench) == asked


def test_a_part_that_is_refused_is_found_beside_what_was_done(bench: Bench) -> None:
    """The caller writes them one by one: the check that was made is found, and stands once."""
    number = bench.open(COLUMN)
    bench.idle()
    checks, head = bench.context.forge.repository(SHOP).checks, bench.head(number)
    made, refused = CheckRequest(head, VIEW, "key"), CheckRequest("0" * 40, VIEW, "other")

    assert checks.find(head, "key").id == 0
    assert checks.write_together(None, [made, refused]) is None
    check_id = checks.find(head, "key")
    assert check_id.node
    assert check_id.url
    assert checks.write(CheckRequest(head, VIEW, "key", check_id)) == check_id


def test_what_an_earlier_release_wrote_is_changed_by_its_number(bench: Bench) -> None:
    """Its record knows no ids of GraphQL; of what is written once more it does."""
    number = bench.open(COLUMN)
    bench.idle()
    record = bench.record(number)
    bare = tuple(type(check)(**{**check.__dict__, "node": ""}) for check in record.checks)
    bench.context.inbox.pulls.update(SHOP, number, change_record, checks=bare, comment_node="")
    before = len(bench.github.calls)
    bench.say(number, "/categorize orders breaking")
    bench.idle()

    after = bench.record(number)
    assert [call for call in bench.github.calls[before:] if call.method == "PATCH"]
    changed = set(after.checks) - set(bare)
    assert changed
    assert all(check.node for check in changed)
    assert after.comment.node
    assert set(bench.conclusions(bench.head(number)).values()) == {"success"}


def test_a_comment_that_is_gone_is_written_anew(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.delete_comment(SHOP, bench.record(number).comment.id, author="ann")
    bench.github.commit(SHOP, "change", MORE, "Again", author="wim")
    bench.idle()

    assert len(bench.bot_comments(number)) == 1
    assert bench.head(number)[:7] in bench.plan(number)


def test_annotations_secrets_and_a_details_link_come_through(bench: Bench) -> None:
    """What GraphQL is given says what REST would have been given, also without our secrets."""
    number = bench.open(COLUMN)
    bench.idle()
    secret = bench.settings.secrets()[0]
    marks = (CheckAnnotation("models/orders.sql", 3, f"Not {secret}", column=2), CheckAnnotation("a.sql", 0, "Odd"))
    view = CheckView("mergeplan / plan", "Failed", f"It says {secret}", conclusion="failure", annotations=marks)
    checks, comment = bench.context.forge.repository(SHOP).checks, bench.record(number).comment.node
    requests = [CheckRequest(bench.head(number), view, key, details="http://localhost/x") for key in ("a", "b")]
    done = checks.write_together(CommentEdit(comment, f"<!-- mergeplan:plan -->\n{secret}"), requests)
    runs = bench.github.state.repositories[SHOP].checks

    assert done is not None
    assert done.edited_at
    for check in done.checks:
        run = runs[check.id]
        assert (run.conclusion, run.details_url, run.summary) == ("failure", "http://localhost/x", "It says ***")
        assert [
            (annotation.start_line, annotation.start_column, annotation.message) for annotation in run.annotations
        ] == [
            (3, 2, "Not ***"),
            (1, None, "Odd"),
        ]
    assert secret not in bench.plan(number)
    assert CheckId() not in done.checks


def test_an_annotation_is_cut_by_bytes_as_github_counts_it(bench: Bench) -> None:
    """It was cut by letters: a long text of others than ASCII had the whole check refused."""
    view = CheckView("mergeplan / plan", "Failed", "Its text", annotations=(CheckAnnotation("a.sql", 1, "é" * 50_000),))
    checks, head = bench.context.forge.repository(SHOP).checks, bench.github.head(SHOP)
    written = checks.write(CheckRequest(head, view, "a"))

    (annotation,) = bench.github.state.repositories[SHOP].checks[written.id].annotations
    assert annotation.message == "é" * 30_000
