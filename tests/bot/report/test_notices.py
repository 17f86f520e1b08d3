"""The sentences about prod."""

from __future__ import annotations

import pytest

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.report.notices import (
    Notice,
    announce_build,
    announce_build_failure,
    announce_deploy,
    announce_hold,
    announce_merge,
    announce_merge_failure,
    announce_push,
    announce_push_failure,
    announce_rollback,
)
from mergeplan.bot.results import PlannerOutcome, Problem

SHOP, COMMIT = "ann/shop~ads", "0123456789abcdef"
DONE = PlannerOutcome(0, True)
FAILED = PlannerOutcome(1, False, problems=(Problem("There is no `x`."),))


@pytest.mark.parametrize(
    ("notice", "sentence"),
    [
        (announce_build(SHOP, DONE), "Prod was built for the first time."),
        (
            announce_build_failure(SHOP, COMMIT, FAILED, is_retried=True),
            "Prod could not be built from 0123456: There is no `x`. The build is tried again automatically.",
        ),
        (
            announce_build_failure(SHOP, COMMIT, FAILED, is_retried=False),
            "Prod could not be built from 0123456: There is no `x`. "
            "It is tried again with the next commit, or by Re-run.",
        ),
        (announce_merge(SHOP, 7, DONE), "#7 is in prod. No view had to change."),
        (announce_merge_failure(SHOP, 7, FAILED), "#7 is merged and not in prod: There is no `x`."),
        (
            announce_hold(SHOP, 7, Decision(frozen="Frozen until Monday.")),
            "#7 is merged and waits: Frozen until Monday.",
        ),
        (announce_deploy(SHOP, 7, "ann"), "ann deployed #7. It is merged and in prod."),
        (announce_push(SHOP, COMMIT, DONE), "0123456 is in prod. No view had to change."),
        (announce_push_failure(SHOP, COMMIT, FAILED), "0123456 was pushed and is not in prod: There is no `x`."),
        (announce_rollback(SHOP, 7, "ann", 3), "ann rolled prod back to revision 3 (#7)."),
    ],
)
def test_each_event_says_what_happened_and_where(notice: Notice, sentence: str) -> None:
    assert notice.text == f"ann/shop (ads): {sentence}"
