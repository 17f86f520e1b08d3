"""Patience with GitHub: pauses, retries, and writes that are never done twice."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from mergeplan.bot.github.patience import Pause
from mergeplan.bot.records import PullState
from mergeplan.bot.report.markdown import code, inert_text, table_cell, tag_text
from mergeplan.bot.settings import redact_secrets
from mergeplan_sandbox.faults import RateLimit
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.sampling import prove_rest


@pytest.mark.parametrize("path", ["/check-runs$", "^/graphql$"])
def test_an_answer_lost_after_the_write_leaves_no_second_comment(bench: Bench, path: str) -> None:
    """Behaviour 24: the connection breaks after the comment and the checks were written; each stands once."""
    bench.github.faults.lose_answer("POST", r"/comments$", times=1)
    if path != "^/graphql$":
        bench.github.faults.fail("POST", "^/graphql$", status=404, times=1000)
    bench.github.faults.lose_answer("POST", path, times=2)
    number = bench.open(COLUMN)
    bench.idle()

    assert len(bench.bot_comments(number)) == 1
    posted = [call for call in bench.github.calls if call.method == "POST" and re.search(path, call.path)]
    names = [
        run.name for run in bench.github.state.repositories[SHOP].checks.values() if run.head_sha == bench.head(number)
    ]
    assert sorted(names) == sorted(set(names))
    assert posted
    assert bench.record(number).state is PullState.PLANNED


@pytest.mark.parametrize("status", prove_rest([500, 502, 404]))
def test_reads_that_fail_in_passing_are_tried_again(bench: Bench, status: int) -> None:
    """Behaviour 24: a plan is made in spite of a few failed answers."""
    bench.github.faults.fail("GET", r"/pulls/\d+$", status=status, times=1 if status == 404 else 2)
    bench.github.faults.fail("PATCH", r"/check-runs/", status=502, times=2)
    number = bench.open(COLUMN)
    bench.idle()
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert bench.record(number).state is PullState.PLANNED


def test_a_rate_limit_pauses_and_the_work_goes_on(bench: Bench) -> None:
    """Behaviour 23: `retry-after` is heeded, and no report is lost."""
    bench.github.faults.rate_limit("POST", r"^/graphql$", says=RateLimit(retry_after=1))
    bench.github.faults.rate_limit("POST", r"/check-runs", says=RateLimit(retry_after=1))
    bench.github.faults.rate_limit("PATCH", r"/check-runs", says=RateLimit(429, retry_after=1))
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.plan(number)
    assert set(bench.conclusions(bench.head(number)).values()) == {"success"}


def test_a_long_pause_is_left_to_the_queue() -> None:
    """Behaviour 23: no thread sleeps for an hour; the job comes back when the pause is over."""
    pause = Pause()
    pause.ask(3600)

    with pytest.raises(Exception, match="GitHub asked to wait"):
        pause.wait()


def test_secrets_and_tokens_are_taken_out_of_texts() -> None:
    """Behaviour 8."""
    text = redact_secrets("a s3cret-word and ghs_abcdefghijklmnopqrstuvwxyz0123 here", ["s3cret-word"])

    assert text == "a *** and *** here"


def cell_of_code(text: str) -> str:
    """A cell of a table, in which a long name may be broken."""
    return table_cell(" ".join(map(code, text.split())))


@pytest.mark.parametrize(
    "secret", ["p_a*s`s[1]", "a&b<c>d'e\"f", "long.name_of.a_token_with.parts_to_break", "x@y://z#1"]
)
@pytest.mark.parametrize("show", [str, inert_text, code, tag_text, cell_of_code, html.escape, quote])
def test_a_secret_is_taken_out_however_a_text_is_escaped(secret: str, show: Callable[[str], str]) -> None:
    shown = redact_secrets(show(f"It is {secret} here"), [secret])

    assert "***" in shown
    assert not [part for part in re.split(r"\W|_", secret) if len(part) > 1 and part in shown]


def test_a_private_key_and_a_token_are_taken_out_where_lines_are_joined() -> None:
    key = "-----BEGIN KEY-----\nMIIE_a/b+c\nxyz=\n-----END KEY-----\n"
    text = inert_text(f"It is {key} and ghs_abcdefghijk_mnopqrstuvwxyz0123.")

    assert redact_secrets(text, [key]) == "It is *** and ***."


def test_a_planted_secret_appears_nowhere(bench: Bench) -> None:
    """Behaviour 8: project code that prints its whole environment finds no secret in it, and none in any comment."""
    number = bench.open({"models/orders.sql": "LEAK\n"})
    bench.idle()

    secrets = bench.settings.secrets()
    shown = "".join(comment.body for comment in bench.bot_comments(number))
    shown += "".join(f"{run.title}{run.summary}" for run in bench.checks(bench.head(number)).values())
    environ = "".join(str(call["environ"]) for call in bench.calls())
    assert "The environment is" in shown
    for secret in secrets:
        assert secret not in shown
        assert secret not in environ
    assert "ghs_" not in shown + environ
