"""What the rules ask of a plan, and which reviews count for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from mergeplan.bot.policy.approvals import (
    People,
    PlanShown,
    Review,
    ReviewRule,
    collect_needs,
    decide_approval,
    summarize_reviews,
)
from mergeplan.bot.policy.codeowners import owners_of, read_owners
from mergeplan.bot.policy.freezes import Freeze, freeze_sentence, frozen_until, next_change
from mergeplan.planner.contract.plan import ModelChange, PlanView

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HEAD, OLD = "a" * 40, "b" * 40
ORDERS = ModelChange(name="shop.orders", path="models/orders.sql", change="direct", category="breaking", tags=("pii",))
TOTALS = ModelChange(name="shop.totals", change="indirect", category="indirect_non_breaking")
PLAN = PlanView(id="p", digest="d1", environment="pr_1", base="prod", models=(ORDERS, TOTALS))
SHOWN = (PlanShown(OLD, ("d1",), "2026-11-22T09:00:00+00:00"), PlanShown(HEAD, ("d1",), "2026-11-22T10:00:00+00:00"))
YES = Review("Ann", "APPROVED", HEAD, "2026-11-22T11:00:00+00:00")


def test_an_approval_counts_for_the_plan_that_was_shown_for_its_commit_at_its_time() -> None:
    """Behaviour 12: of an older head with the same plan too; not before it was shown, not of a head never planned."""
    early = replace(YES, at="2026-11-22T09:59:00+00:00")
    of_old = replace(YES, commit=OLD)

    assert [summarize_reviews((review,), SHOWN, ("d1",), "wim").approved for review in (YES, of_old, early)] == [
        ("ann",),
        ("ann",),
        (),
    ]
    same_second = replace(YES, at=SHOWN[-1].since)
    assert summarize_reviews((same_second,), SHOWN, ("d1",), "wim").outdated == ("ann",)
    assert summarize_reviews((YES,), SHOWN, ("d2",), "wim").outdated == ("ann",)
    assert summarize_reviews((replace(YES, commit="c" * 40),), SHOWN, ("d1",), "wim").approved == ()


def test_the_authors_own_approval_never_counts() -> None:
    """Behaviour 12: in whatever case the login is written."""
    assert summarize_reviews((YES,), SHOWN, ("d1",), "ANN").approved == ()


def test_a_rule_is_about_models_categories_and_tags() -> None:
    """What an indirect model keeps asks nobody; a rule for another category asks nobody."""

    def needed_names(rule: ReviewRule) -> tuple[str, ...]:
        return tuple(name for need in collect_needs((rule,), PLAN, {}).needs for name in need.models)

    assert needed_names(ReviewRule(approvals=1)) == ("shop.orders",)
    assert needed_names(ReviewRule(("tag:pii",), ("breaking",), 1)) == ("shop.orders",)
    assert needed_names(ReviewRule(("shop.totals",), (), 1)) == needed_names(ReviewRule(("*",), ("removed",), 1)) == ()


def test_two_approvals_of_named_people_are_two_of_them() -> None:
    """Whoever else approves is not counted, nor is a team whose members cannot be read."""
    asked = collect_needs((ReviewRule(approvals=2, approvers=("ann", "acme/data")),), PLAN, {})
    reviewed = summarize_reviews((YES, replace(YES, author="bob")), SHOWN, ("d1",), "wim")

    assert [
        need.left for need in decide_approval(asked, reviewed, People(unread=frozenset({"acme/data"})), NOW).missing
    ] == [1]
    assert decide_approval(asked, reviewed, People(members={"acme/data": frozenset({"bob"})}), NOW).is_ok


def test_code_owners_are_read_as_github_reads_them() -> None:
    """The last pattern that fits counts; one without owners frees what it fits."""
    owned = read_owners("*.sql @ann # all\n/models/ @acme/Data\n/models/free.sql\ndocs/* @bob\n")
    paths = ("models/a.sql", "models/free.sql", "etl/b.sql", "docs/a.md", "docs/x/a.md", "README")

    assert [owners_of(path, owned) for path in paths] == [("acme/data",), (), ("ann",), ("bob",), (), ()]


def test_a_freeze_knows_its_zone_and_when_it_begins_and_ends() -> None:
    """By the clocks of the zone, also across a change of summer time."""
    weekend = Freeze("Europe/Berlin", cron="0 16 * * 5", hours=64, reason="the weekend.")
    days = Freeze("America/New_York", datetime(2026, 12, 20), datetime(2027, 1, 4))
    freeze = frozen_until((weekend, days), NOW)

    assert (
        freeze
        and freeze_sentence(*freeze) == "Prod is frozen until Mon 23 Nov 2026 08:00 (Europe/Berlin): the weekend."
    )
    assert next_change((weekend, days), NOW) == datetime(2026, 11, 23, 7, tzinfo=UTC)
    assert frozen_until((weekend, days), datetime(2026, 11, 25, tzinfo=UTC)) is None
    assert days.span(datetime(2026, 12, 20, 4, 59, tzinfo=UTC)) is None
    assert days.span(datetime(2026, 12, 20, 5, tzinfo=UTC)) is not None


def test_an_owner_of_each_reader_in_another_project_is_needed() -> None:
    """Of a view downstream too, which computes nothing; one approval for all that the same people own."""
    view = ModelChange(name="shop.view", change="indirect", category="indirect_breaking")
    plan = PLAN.model_copy(update={"models": (ORDERS, TOTALS, view)})
    readers = {"shop.orders": [("acme/fin",), ("acme/fin",)], "shop.view": [("bob",), ()]}
    rule = ReviewRule(reader_owners=True)

    assert [need.approvers for need in collect_needs((rule,), plan, {}, readers).needs] == [("acme/fin",), ("bob",), ()]
    assert collect_needs((replace(rule, models=("shop.totals",)),), plan, {}, readers).needs == ()
    assert collect_needs((ReviewRule(code_owners=True),), plan, {}, readers).needs == ()
