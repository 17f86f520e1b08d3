"""Pages are read by a machine as code is: `python -m tests.prose PAGE` prints what it finds."""

from __future__ import annotations

import pytest

from tests.prose import ROOT, SENTENCE_END, broken_rules, checked_pages, page_findings, text_findings
from tests.user_texts import user_texts

FINDINGS_MAX, WORDS_MAX = 5, 2500
LISTS = (
    "docs/reference/",
    "CHANGELOG.md",
    "docs/explanation/dbt-results.md",
    "docs/development/architecture.md",
)  # may be long
PRIVATE_MAX = 3  # sentences of the planner and the bot with a private word: lower it with every improvement
LIMITS: dict[str, int] = {}  # pages that are to get better: lower a number with every improvement


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("A plan " + "and a plan " * 10, "over 30 words"),
        ("Which of them wins is said below.", "opens with a relative clause"),
        ("**Where** no schema is set, `default` is used.", "opens with a relative clause"),
        ("It plans; it builds; it merges.", "chain of semicolons"),
        ("The table is read, is then copied and was kept.", "chain of passives"),
        ("The bot is told of it.", "private word"),
    ],
)
def test_a_rule_finds_its_kind_of_sentence(sentence: str, rule: str) -> None:
    assert broken_rules(sentence) == [rule]


def test_a_question_and_plain_sentences_break_no_rule() -> None:
    assert broken_rules("What does it compute?") == []
    assert broken_rules("The bot plans the pull request; a merge promotes it.") == []


def test_code_counts_as_a_word_and_headings_are_left_out() -> None:
    text = "# What it reads\n\n`a; b; c; d`: see [the plan](plan.md).\n\n```\nWhich;;;\n```\n\n- Which of two\n"

    assert [(finding.line, finding.sentence) for finding in text_findings(text)] == [(9, "Which of two")]


@pytest.mark.parametrize("page", checked_pages())
def test_a_page_has_few_findings(page: str) -> None:
    findings = page_findings(page)

    assert len(findings) <= LIMITS.get(page, FINDINGS_MAX), findings


def test_a_limit_is_about_a_page_with_more_findings_than_others() -> None:
    assert set(LIMITS) <= set(checked_pages())
    assert min(LIMITS.values(), default=FINDINGS_MAX + 1) > FINDINGS_MAX


def test_a_page_that_is_no_list_has_at_most_2500_words() -> None:
    lengths = {page: len((ROOT / page).read_text(encoding="utf-8").split()) for page in checked_pages()}

    assert {page: n for page, n in lengths.items() if n > WORDS_MAX and not page.startswith(LISTS)} == {}


def user_sentences(rule: str) -> list[str]:
    """Return the sentences that users are shown and that break a rule; a heading has no full stop."""
    sentences = [(text.place, sentence) for text in user_texts() for sentence in SENTENCE_END.split(text.text)]
    return [f"{place}: {text}" for place, text in sentences if text.endswith((".", ":")) and rule in broken_rules(text)]


def test_no_message_opens_with_a_relative_clause() -> None:
    openings = user_sentences("opens with a relative clause")

    assert [text for text in openings if not text.partition(": ")[2].startswith("Whether ")] == []


def test_messages_use_few_private_words() -> None:
    assert len(user_sentences("private word")) <= PRIVATE_MAX
