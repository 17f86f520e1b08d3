"""Transitions of records: what each sets, and that it leaves the rest to others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.pull_parts import PendingOverride
from mergeplan.bot.records import Pull, PullRecord, PullState
from mergeplan.bot.transitions.environments import record_destroy
from mergeplan.bot.transitions.planning import (
    RunResult,
    Transition,
    conclude_run,
    report_progress,
    set_spark_ui,
    skip_planning,
)
from mergeplan.bot.transitions.promotion import await_promotion, conclude_promotion
from mergeplan.bot.transitions.requests import (
    allow_head,
    approve_cost,
    request_deploy,
    request_rollback,
    stop_promotion,
)
from tests.bot.changing import PULL_FIELDS, change_record

RECORD = PullRecord("ann/shop", 7)
PULL = Pull(7, "More", "ann", True, False, "", "b" * 40, False, "main", "")


def test_two_writers_of_different_fields_lose_nothing(tmp_path: Path) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path}/inbox.db")
    inbox.pulls.update("ann/shop", 7, await_promotion, merge_sha="a")
    writers: list[Transition] = [
        partial(report_progress, progress="Computing."),
        partial(set_spark_ui, address="http://spark"),
        partial(stop_promotion, who="ann"),
        partial(request_deploy, who="ben", head="a"),
        partial(request_rollback, who="cat", revision=3),
    ]

    with ThreadPoolExecutor(len(writers)) as threads:
        list(threads.map(lambda writer: inbox.pulls.update("ann/shop", 7, writer), writers * 3))
    record = inbox.pulls.get("ann/shop", 7)
    inbox.close()

    assert (record.run.progress, record.run.spark_ui) == ("Computing.", "http://spark")
    assert (record.promotion.unlock_by, record.deploy.by, record.rollback.by) == ("ann", "ben", "cat")


def test_a_transition_that_fails_stores_nothing(tmp_path: Path) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path}/inbox.db")

    def fail(record: PullRecord) -> PullRecord:
        raise ValueError(replace(record, reason="lost").reason)

    with pytest.raises(ValueError, match="lost"):
        inbox.pulls.update("ann/shop", 7, fail)
    stored = inbox.pulls.get("ann/shop", 7)
    inbox.close()
    assert stored == RECORD


def test_the_end_of_a_run_keeps_the_overrides_that_came_meanwhile() -> None:
    first, second = (PendingOverride(name, "breaking", "ann", "a") for name in ("shop.a", "shop.b"))
    record = change_record(RECORD, overrides=(first, second), attempts=2, progress="Computing.")

    ended = conclude_run(record, RunResult(PullState.PLANNED, "[]", "now"), frozenset({("shop.a", "breaking")}))

    assert (ended.state, ended.wishes.overrides, ended.run.attempts) == (PullState.PLANNED, (second,), 0)
    assert (ended.run.lines, ended.run.planned_at, ended.run.progress) == ("[]", "now", "")


def test_a_skipped_head_shows_no_plan_of_an_older_one() -> None:
    record = change_record(RECORD, state=PullState.PLANNED, run_lines="[]", shown_head="a" * 40)

    skipped = skip_planning(record, PULL, "no-plan", forward_only=False)

    assert (skipped.head, skipped.run.lines, skipped.shown.head) == (PULL.head, "", "")


def test_a_promotion_ends_a_deploy_and_clears_an_earlier_reversal() -> None:
    record = change_record(RECORD, deploy_by="ann", deploy_stage="promoting", deploy_result="why")

    promoted = conclude_promotion(record, "[]", 4, "")

    assert (promoted.deploy.by, promoted.deploy.stage, promoted.deploy.result) == ("", "", "why")
    assert (promoted.state, promoted.promotion.revision) == (PullState.PROMOTED, 4)


def test_a_destroyed_environment_leaves_an_open_pull_request_cancelled() -> None:
    record = change_record(RECORD, state=PullState.PLANNED, destroy_by="ann", environment_exists=True)

    dropped = record_destroy(record, is_over=False)

    assert (dropped.state, dropped.environment.exists, dropped.environment.destroy_by) == (
        PullState.CANCELLED, False, "",
    )  # fmt: skip
    assert dropped.reason == "ann dropped its environment; `/plan` builds it again."


def test_an_approved_cost_asks_for_another_plan_of_the_head() -> None:
    approved = approve_cost(RECORD, (5, 1.0), "a")

    assert (approved.permits.cost, approved.permits.cost_head, approved.wishes.again) == ((5, 1.0), "a", True)


def test_an_allowed_head_of_a_fork_hides_what_was_shown_without_a_plan() -> None:
    held = change_record(RECORD, state=PullState.HELD, shown_head="a", shown_since="then")

    assert allow_head(held, "a").shown.since == ""
    assert allow_head(replace(held, state=PullState.PLANNED), "a").shown.since == "then"


def test_tests_may_name_every_field_of_a_record() -> None:
    parts = {entry.name for entry in fields(PullRecord)} - PULL_FIELDS.keys()

    assert {part for part, _ in PULL_FIELDS.values()} == parts | {""}
