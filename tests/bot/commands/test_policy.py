"""Who may do what, and when what they saw is still so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.policy import Allowed, NotAllowed, decide_command
from mergeplan.bot.commands.table import DEFAULT_NEEDS, FORMS
from mergeplan.bot.policy.roles import ROLES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=2)
HEAD, OLD = "a" * 40, "b" * 40
SEEN = Facts("write", HEAD, HEAD, NOW, NOW + timedelta(minutes=1), NOW, "p1")
MERGED = replace(SEEN, role="maintain", is_open=False, promoted=True, promoted_revision=3, prod_revision=3)
FORK = replace(SEEN, role="maintain", is_fork=True)
CATEGORIZE, OK = Command("categorize", "/c", "a.b", "breaking"), Command("ok-to-plan", "/o", sha=HEAD)
COST = Command("approve-cost", "/a")


@pytest.mark.parametrize("verb", FORMS)
def test_each_verb_has_a_least_permission(verb: str) -> None:
    """Behaviour 3: below it nothing is done, and the reply names needed and actual; unread, it is refused."""
    need = DEFAULT_NEEDS[verb]
    below = ROLES[ROLES.index(need) - 1]
    seen = replace(SEEN, deploys=True)
    verdicts = [decide_command(Command(verb, ""), replace(seen, role=role), DEFAULT_NEEDS) for role in (below, None)]

    if verb == "help":
        assert verdicts == [Allowed(), Allowed()]
        return
    low, unread = verdicts
    assert isinstance(low, NotAllowed) and f"`{need}`" in low.why and f"`{below}`" in low.why
    assert isinstance(unread, NotAllowed) and "could not be verified" in unread.why


@pytest.mark.parametrize(
    ("command", "facts", "why"),
    [
        (CATEGORIZE, SEEN, ""),
        (CATEGORIZE, replace(SEEN, live_head=OLD), "the head is now"),
        (CATEGORIZE, replace(SEEN, base_moved=True), "Prod has moved"),
        (CATEGORIZE, replace(SEEN, said_at=NOW - timedelta(seconds=1)), "an outdated plan"),
        (CATEGORIZE, replace(SEEN, shown_head="", shown_since=None), "No plan has been posted"),
        (CATEGORIZE, replace(SEEN, is_open=False), "is closed"),
        (CATEGORIZE, replace(SEEN, elsewhere="main"), "does not merge into `main`"),
        (OK, FORK, ""),
        (
            OK,
            replace(FORK, live_head=OLD, shown_head=OLD),
            f"The head is now `{OLD}`. Look at it, then type `/ok-to-plan {OLD}`",
        ),
        (replace(OK, sha=HEAD[:7]), FORK, f"write the full one. The head is `{HEAD}`. Look at it"),
        (replace(OK, sha=HEAD[:39]), FORK, "write the full one"),
        (replace(OK, sha=HEAD + HEAD[:24]), FORK, "write the full one"),
        (OK, replace(FORK, said_at=NOW - timedelta(seconds=1)), "older than this head"),
        (OK, replace(FORK, shown_head=OLD), "older than this head"),
        (OK, replace(FORK, shown_head="", shown_since=None), "older than this head"),
        (OK, replace(FORK, is_open=False), "is closed"),
        (CATEGORIZE, replace(SEEN, is_held=True), "No plan has been posted"),
        (OK, replace(FORK, is_fork=False), "not come from a fork"),
        (Command("diff", "/d"), replace(SEEN, is_built=True), ""),
        (Command("diff", "/d"), SEEN, "No environment is built"),
        (Command("lineage", "/l"), SEEN, ""),
        (Command("lineage", "/l"), replace(SEEN, is_running=True), "There is no plan yet"),
        (Command("deploy", "/d"), SEEN, "prod follows what people merge"),
        (Command("backfill", "/b"), replace(SEEN, is_open=False), "is closed"),
        (Command("allow-destructive", "/a"), replace(SEEN, role="maintain", live_head=OLD), "the head is now"),
        (Command("cancel", "/c"), SEEN, "Nothing is running"),
        (Command("rollback", "/r"), MERGED, ""),
        (Command("rollback", "/r"), replace(MERGED, prod_revision=4), "Prod has moved on"),
        (Command("rollback", "/r"), replace(MERGED, promoted_revision=1, prod_revision=1), "no earlier revision"),
        (Command("rollback", "/r", number=1), replace(MERGED, prod_revision=4), ""),
        (Command("rollback", "/r", number=3), MERGED, "name an earlier one"),
        (Command("unlock", "/u"), MERGED, "No promotion"),
        (Command("extend", "/e", number=91), replace(SEEN, has_environment=True), "90 days at most"),
        (Command("destroy", "/d"), replace(SEEN, has_environment=True), ""),
        (Command("destroy", "/d"), SEEN, "no environment"),
        (Command("restate", "/r"), SEEN, "No environment is built"),
        (Command("deploy", "/d"), replace(SEEN, deploys=True, role="maintain"), ""),
        (Command("deploy", "/d"), replace(SEEN, deploys=True, role="maintain", live_head=OLD), "the head is now"),
        (Command("deploy", "/d"), replace(SEEN, deploys=True, role="maintain", plan_since=LATER), "an outdated plan"),
        (Command("deploy", "/d"), replace(SEEN, deploys=True, role="maintain", plan_since=None), "an outdated plan"),
        (COST, replace(SEEN, role="maintain", waits_for_cost=True), ""),
        (COST, replace(SEEN, role="maintain", waits_for_cost=True, plan_since=LATER), "an outdated plan"),
        (Command("deploy", "/d"), replace(MERGED, is_held_merge=True), "needs the `admin` permission"),
        (Command("rollback", "/r"), replace(MERGED, promoted=False), "is not in prod"),
    ],
)
def test_a_command_runs_only_on_what_was_seen(command: Command, facts: Facts, why: str) -> None:
    """Behaviours 4, 5: other head, base or plan, and nothing is done; the reason says which."""
    verdict = decide_command(command, facts, DEFAULT_NEEDS)

    assert why in verdict.why if isinstance(verdict, NotAllowed) else not why
