"""docs/explanation/promises.md, each promise with the tests that hold it, by `python -m tests.promises_page`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "promises.md"
MARKED = re.compile(r"(<!-- promises: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NAMED = re.compile(r"Behaviours? ((?:\d+(?:, | and )?)+)")
SHOWN = 3  # tests of a promise that are listed; the others are counted
PROMISES: Mapping[str, Mapping[int, str]] = {
    "safety": {
        1: "a webhook with a missing or wrong signature gets 401; its body is not parsed, stored or logged",
        2: "a delivery that comes twice, also at once or after a restart, runs once",
        3: "a commenter's permission is read when the command runs; too low or unreadable: nothing changes",
        4: "a command changes something only for the plan that was shown: another head, base or plan refuses it",
        5: "a commit that is pushed between a command and its execution is never promoted",
        6: "no code of a fork runs before a maintainer names its head's whole SHA; a push needs a new approval",
        7: "text from comments, branches, titles, model names and settings stays one argument; no shell sees it",
        8: "a secret is in no comment, check, log, page, traceback or child process",
        9: "what is promoted is what was planned, or it is planned and built again before a view moves",
        10: "a pull request does not change the rules that it is judged by, and its comment says that it tries",
        11: "two promotions of one environment never overlap; the one that waits names the one that runs",
        12: "only a reviewer's latest review, of the plan that was shown, counts; the author's own never does",
        13: "prod does not go back to an older version by a stale pull request",
        14: "echoed text triggers no mention and no link, and cannot break its cell or code span",
        15: "rows are shown only where the project allows it, and masked except in the columns that it names",
        43: "nothing that a pull request's code can write is later read, run or trusted",
    },
    "reliability": {
        16: "a webhook is answered within a second, once it is stored for good; a kill right after loses nothing",
        17: "after a kill a run is concluded, no check stays in progress, and prod is whole",
        18: "with all webhooks lost the timer finds what was opened, pushed, said and merged",
        19: "webhooks in any order, and twice, end in the same state",
        20: "a push supersedes the run of an older head; many pushes cause few plans",
        21: "a pull request that is closed while it is planned leaves nothing; reopened, it is built again",
        22: "a base that moves makes the plan again before it can be promoted",
        23: "a rate limit pauses the calls of its installation for as long as GitHub asks, and nothing is lost",
        24: "failed reads are repeated; a write whose answer was lost is not written twice",
        25: "on SIGTERM work in progress goes back to the queue in time; no command has to be repeated",
        26: "a promotion or deploy that fails leaves prod unchanged, reports it, and can be repeated",
        27: "the bot's own required checks never keep it from its work",
        28: "an event that cannot be read, or is not ours, is answered and set aside; the next one is handled",
        29: "a project that does not load fails the check at its file and line",
        44: "an outage of one owner delays no other owner",
        45: "transient failures are retried; permanent ones are shown, without a path of the server",
        46: "after a crash the comment says what the recovered promotion moved",
        50: "with `promotion.atomic` a query sees all of prod before a promotion or after it, where columns stay",
    },
    "experience": {
        30: "a command gets 👀 at once, and 🚀 or 😕 at its end; other comments and other bots' get nothing",
        31: "one plan comment, edited in place, found by marker and author",
        32: "the comment opens with what counts",
        33: "it ends with what blocks the merge, and the commands that are accepted now",
        34: "however long, it stays valid and below GitHub's limit, and its summary stays",
        35: "an unknown command, model or category gets one reply with the nearest one",
        36: "/help lists what is enabled; several commands run in order; edited comments run nothing",
        37: "commands may be in any case, with spaces and back-ticks, at the start of a line",
        38: "checks have stable names; nothing to do is a success; *Re-run* works",
        39: "what is wrong is annotated at its line",
        40: "commands can be undone and repeated, and the reply says how it stands",
        41: "what changed and what it affects is drawn; a large graph is folded",
        42: "health, readiness, metrics, structured logs, and every decision on record",
        47: "what a change does to rows, and what it costs, is shown before it is merged or spent",
        48: "what is costly or destructive is allowed from the pull request, for that head alone",
        49: "five hundred changed models are one screen that decides",
    },
}


def tests_by_number() -> dict[int, list[str]]:
    """Promise -> the tests that name it, as `file::test`."""
    tests: dict[int, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, said in _tests(path):
            for number in re.findall(r"\d+", said):
                tests.setdefault(int(number), []).append(f"{path.relative_to(ROOT).as_posix()}::{name}")
    return tests


def _tests(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            named = NAMED.match(ast.get_docstring(node) or "")
            if named:
                yield node.name, named[1]


def page(text: str) -> str:
    """The page with the tables as they must be."""
    tests = tests_by_number()
    return MARKED.sub(lambda match: f"{match[1]}{_table(PROMISES[match[2]], tests)}{match[3]}", text)


def _table(promises: Mapping[int, str], tests: Mapping[int, list[str]]) -> str:
    rows = (f"| {number} | {said} | {_list_tests(tests.get(number, []))} |\n" for number, said in promises.items())
    return "| | Promise | Tests |\n|---|---|---|\n" + "".join(rows)


def _list_tests(tests: list[str]) -> str:
    if not tests:
        return "**none**"
    more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    return ", ".join(f"`{test}`" for test in tests[:SHOWN]) + more


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
