"""What is asked of mergeplan for a run of Dagster: a run, a restatement, or going on with one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.dagster.request import DONE, RESTATING, Mode, Request, decide_request, environment_of

DAY = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
TIMES = ("--start", "2026-01-01 00:00:00", "--end", "2026-01-02 00:00:00")


def test_a_run_of_all_that_is_due_names_no_model() -> None:
    assert Request("prod").arguments == ("run", "prod", "--output", "json")


def test_models_without_partitions_are_run_alone() -> None:
    request = decide_request("prod", ("shop.a", "shop.b"), None, Mode.AUTO, {})

    assert request.arguments[:7] == (
        "run", "prod", "--select-model", "shop.a", "--select-model", "shop.b", "--no-auto-upstream",
    )  # fmt: skip


def test_a_partition_that_a_person_asks_for_is_computed_again() -> None:
    arguments = decide_request("prod", ("shop.a",), DAY, Mode.AUTO, {}).arguments

    assert arguments[:8] == ("plan", "prod", "--restate-model", "shop.a", *TIMES)
    assert "--auto-apply" in arguments


def test_a_partition_that_automation_asks_for_is_computed_where_it_is_missing() -> None:
    tags = {"dagster/from_automation_condition": "true"}

    assert not decide_request("prod", ("shop.a",), DAY, Mode.AUTO, tags).restates


def test_a_restatement_that_cleared_its_intervals_is_not_begun_again() -> None:
    """Its intervals are missing now: clearing them once more would compute again what the first try has computed."""
    assert decide_request("prod", ("shop.a",), DAY, Mode.AUTO, {RESTATING: "12ab"}) == Request("prod")
    assert decide_request("prod", ("shop.a",), DAY, Mode.AUTO, {RESTATING: DONE}).restates


def test_a_restatement_of_days_names_those_that_are_asked_for() -> None:
    days = [
        decide_request("prod", ("shop.a",), None, Mode.RESTATE, {}, days).arguments[4:8]
        for days in (("2026-01-01", "2026-01-02"), ("2026-01-01", ""), ("", ""))
    ]
    assert days == [
        ("--start", "2026-01-01", "--end", "2026-01-02"),
        ("--start", "2026-01-01", "--auto-apply", "--no-diff"),
        ("--auto-apply", "--no-diff", "--skip-tests", "--skip-linter"),
    ]


def test_a_mode_says_what_is_done_whatever_is_asked_for() -> None:
    assert decide_request("prod", ("shop.a",), None, Mode.RESTATE, {}).restates
    assert not decide_request("prod", ("shop.a",), DAY, Mode.RUN, {}).restates


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "prod"),
        ({"DAGSTER_CLOUD_PULL_REQUEST_ID": "7"}, "prod"),
        ({"DAGSTER_CLOUD_IS_BRANCH_DEPLOYMENT": "1", "DAGSTER_CLOUD_PULL_REQUEST_ID": "7"}, "pr_7"),
        ({"DAGSTER_CLOUD_IS_BRANCH_DEPLOYMENT": "0", "DAGSTER_CLOUD_PULL_REQUEST_ID": "7"}, "prod"),
    ],
)
def test_a_branch_deployment_shows_the_environment_of_its_pull_request(environ: dict[str, str], name: str) -> None:
    assert environment_of(environ, "prod") == name
