"""What an edit of a description begins and ends: lines that its editor wrote, and none that another one wrote."""

from __future__ import annotations

import pytest

from mergeplan.bot.commands.command import Mistake
from mergeplan.bot.commands.description import compare_descriptions, keep_current
from mergeplan.bot.commands.reading import read_commands

DAILY, JANUARY = "/restate shop.daily --copy", "/restate shop.daily --start 2026-01-01 --end 2026-01-31 --copy"
RESET = "/mergeplan restate shop.daily --copy --reset"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("", f"Wrong rows.\n{DAILY}\n", [f"/mergeplan {DAILY[1:]}"]),
        (DAILY, f"Wrong rows.\r\n\r\n`{DAILY}`", []),
        (DAILY, "Wrong rows.", [RESET]),
        (DAILY, JANUARY, [f"/mergeplan {JANUARY[1:]}"]),
        (f"{DAILY}\n{JANUARY}", JANUARY, [RESET]),
        (f"{DAILY} --project ads", "", [f"{RESET} --project ads"]),
        ("", f"> {DAILY}\n```\n{DAILY}\n```\n/plan", []),
        ("", "/restate shop.daily", ["/mergeplan restate shop.daily"]),
    ],
)
def test_an_edit_asks_for_what_it_changed(before: str, after: str, lines: list[str]) -> None:
    edit = compare_descriptions(before, after)

    assert (list(edit.lines), edit.hidden) == (lines, False)
    assert len(read_commands("\n".join(edit.lines))) == len(lines)


@pytest.mark.parametrize("hidden", [f"<!-- {DAILY} -->", f"> {DAILY}", f"    {DAILY}", f"See `{DAILY.upper()}`"])
def test_who_uncovers_the_line_of_another_person_did_not_write_it(hidden: str) -> None:
    assert compare_descriptions(hidden, DAILY).hidden


def keep(left: str, now: str, before: str = "") -> list[str]:
    requests = read_commands("\n".join(compare_descriptions(before, left).lines))
    kept = keep_current(requests, left, now)
    return [f"{request.cause}" if isinstance(request, Mistake) else request.text for request in kept]


def test_webhooks_that_come_late_ask_for_nothing_that_the_description_lost_or_got_back() -> None:
    assert (keep(DAILY, DAILY), keep(DAILY, ""), keep(DAILY, JANUARY)) == ([DAILY], [], [])
    assert keep("", "", before=DAILY) == [f"{DAILY} --reset"]
    assert (keep("", DAILY, before=DAILY), keep("", JANUARY, before=DAILY)) == ([], [])
    assert keep(JANUARY, JANUARY, before=f"{DAILY}\n{JANUARY}") == [f"{DAILY} --reset"]


def test_a_line_that_cannot_be_carried_out_is_a_mistake() -> None:
    assert keep(f"{DAILY}\n{JANUARY}", f"{DAILY}\n{JANUARY}") == ["The description restates that twice."] * 2
    assert keep("/restate shop.daily", "/restate shop.daily") == ["In a description it needs `--copy`."]
