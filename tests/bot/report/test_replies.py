"""Replies to commands: text of a project or of Spark in them mentions nobody, links nowhere and formats nothing."""

from __future__ import annotations

import json

import pytest
from markdown_it import MarkdownIt

from mergeplan.bot.child.planner_process import Finished
from mergeplan.bot.commands.form import QUESTION
from mergeplan.bot.commands.table import form_of
from mergeplan.bot.pulls.questions import complete_answer
from mergeplan.bot.records import Answer, CommandRow, PullRecord, PullState
from mergeplan.bot.report.markdown import inert_text
from mergeplan.bot.report.replies import format_reply
from mergeplan.bot.results import select_lines
from mergeplan.planner.contract.wire import read_line
from tests.bot.changing import change_record

EVIL = "# Column @org/team <img src=x> [a](http://x) is gone, see #7, GH-8 and www.evil.example"
LIVE = ("@org", "<img", "<a ", "<h1", "://", "#7", "GH-8", "www.")


def page_of(answer: Answer) -> str:
    row = CommandRow(1, "ann/shop", 7, "wim", "", "")
    text = format_reply(row, (answer,), "planned.")
    return MarkdownIt("commonmark", {"html": True}).render(text)


def test_a_question_that_fails_quotes_the_error_as_text() -> None:
    line = read_line(json.dumps({"event": "error", "message": EVIL, "hint": EVIL, "kind": "QueryError"}))
    assert line
    answer = complete_answer(Answer("/diff", True, "", waits_for=QUESTION), Finished(select_lines([line]), 1))

    assert "Column" in page_of(answer)
    assert not [live for live in LIVE if live in page_of(answer)]


@pytest.mark.parametrize(
    ("command", "changes"), [("/deploy", {"deploy_result": EVIL}), ("/rollback", {"reason": EVIL})]
)
def test_a_promotion_that_fails_quotes_the_error_as_text(command: str, changes: dict[str, str]) -> None:
    record = change_record(PullRecord("ann/shop", 7, PullState.PLANNED, "a" * 40), **changes)
    page = page_of(form_of(command).finish(Answer(command, True, ""), record))

    assert "Column" in page
    assert not [live for live in LIVE if live in page]


@pytest.mark.parametrize("text", ["# a", "- a", "> a", "1. a", "=== a", "+ a", "costs $1$ and $`x`$"])
def test_foreign_text_begins_no_block_and_no_formula(text: str) -> None:
    """A heading, a list, a quote, a rule below the line before; GitHub reads `$...$` as a formula."""
    page = MarkdownIt("commonmark").render(f"before\n{inert_text(text)}")

    assert page.count("<p>") == 1 and page.count("<") == 2 + 2 * text.count("`x`")
    assert "$" not in inert_text(text).replace(r"\$", "")
