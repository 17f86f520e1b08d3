"""A pull request names who in other repositories reads what it changes, as far as these let their names be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.inbox.queue import CATALOG
from mergeplan.bot.prod.other_catalogs import OtherCatalogs
from mergeplan.bot.readers.impact import ReaderSummary
from mergeplan.bot.records import PullState
from tests.bot.conftest import FILTER, PROJECT, SHOP, Bench, until

FINANCE = "ann/finance"
REVENUE = {
    "config.yaml": "gateways: {}\n",
    "models/revenue.sql": "-- reads shop.orders.id\nSELECT 1 AS id\n",
}
SHOWN = {**REVENUE, "config.yaml": f"gateways: {{}}\ncicd_bot: {{show_reads_to: [{SHOP}]}}\n"}
DROP = {"shop.orders": {"removed": ["id"]}}


def add_repository(bench: Bench, name: str = FINANCE, files: dict[str, str] = REVENUE, **facts: bool) -> None:
    """A repository of the same App, promoted, whose model `shop.revenue` reads the shop's `shop.orders.id`."""
    bench.github.create_repository(name, files)
    for fact, value in facts.items():
        setattr(bench.github.state.repositories[name], fact, value)
    bench.github.install_app(name)
    bench.idle()


def readers(bench: Bench, number: int) -> tuple[ReaderSummary, ...]:
    return bench.record(number).nearby.readers


@pytest.fixture(name="shop")
def _shop(copy_bench: Callable[..., Bench]) -> Bench:
    """A private shop, whose orders lose a column in each pull request."""
    bench = copy_bench()
    bench.github.state.repositories[SHOP].private = True
    bench.knobs(columns=DROP)
    return bench


def test_a_repository_that_lets_its_names_be_seen_is_named_with_its_columns(shop: Bench) -> None:
    add_repository(shop, files=SHOWN)
    number = shop.open(FILTER)
    shop.idle()

    (summary,) = readers(shop, number)
    assert (summary.name, summary.models, summary.takes) == (FINANCE, 1, True)
    plan = shop.plan(number)
    headline = plan.splitlines()[1]
    assert "which 1 other project reads" in headline, headline
    assert "`shop.revenue`" in plan
    assert "`shop.revenue`" in (shop.checks(shop.head(number))["plan"].summary or "")


def test_a_model_that_reads_other_columns_is_kept_and_not_counted(shop: Bench) -> None:
    prices = "-- reads shop.orders.price\nSELECT 1 AS price\n"
    shop.knobs(columns={"shop.orders": {"altered": ["id"]}})
    add_repository(shop, files={**SHOWN, "models/prices.sql": prices})
    number = shop.open(FILTER)
    shop.idle()

    (summary,) = readers(shop, number)
    assert (summary.models, [(one.reader, one.keeps) for one in summary.readings]) == (
        1,
        [("shop.revenue", False), ("shop.prices", True)],
    )
    rows = [line for line in shop.plan(number).split("\n") if line.startswith(f"| `{FINANCE}`")]
    assert ["🟠 Indirect breaking" in rows[0], "⚪ Indirect non-breaking" in rows[1]] == [True, True]


def test_any_other_repository_is_a_number_and_its_owners(shop: Bench) -> None:
    (shop.folder / "home" / FINANCE).mkdir(parents=True)
    (shop.folder / "home" / FINANCE / "knobs.json").write_text('{"owner": "Ann of finance"}')
    add_repository(shop)
    number = shop.open(FILTER)
    shop.idle()

    expected = ReaderSummary(models=1, owners=("Ann of finance",), takes=True)
    assert readers(shop, number) == (expected,)
    shown = "\n".join((shop.plan(number), *(str(run) for run in shop.checks(shop.head(number)).values())))
    assert "Another repository: 1 model, owned by `Ann of finance`" in shown
    assert "finance/" not in shown.replace("ann/finance", "finance/") and "revenue" not in shown


def test_a_public_repository_learns_nothing_of_a_private_one(shop: Bench) -> None:
    add_repository(shop, private=True)
    shop.github.state.repositories[SHOP].private = False
    number = shop.open(FILTER)
    shop.idle()

    assert shop.record(number).state is PullState.PLANNED
    assert readers(shop, number) == ()
    assert "other project" not in shop.plan(number)


def test_what_finance_no_longer_lets_be_seen_is_hidden_at_once(shop: Bench) -> None:
    add_repository(shop, files=SHOWN)
    number = shop.open(FILTER)
    shop.idle()
    shop.github.commit(FINANCE, "main", {"config.yaml": REVENUE["config.yaml"]}, "No names", author="ann")
    shop.idle()

    assert [summary.name for summary in readers(shop, number)] == [""]
    assert "revenue" not in shop.plan(number)


def test_a_pull_request_cannot_ask_about_a_table_that_prod_does_not_show(shop: Bench) -> None:
    """It adds a model of the name of a table that finance reads: that table is not the shop's."""
    secret = {**SHOWN, "models/revenue.sql": "-- reads shop.salaries.amount\nSELECT 1 AS id\n"}
    add_repository(shop, files=secret)
    number = shop.open({"models/salaries.sql": "SELECT 1 AS amount\n", "config.yaml": SHOWN["config.yaml"]})
    shop.idle()

    assert [model.name for model in shop.record(number).outcome.plan.models] == ["shop.salaries"]  # type: ignore[union-attr]
    assert readers(shop, number) == ()


def test_a_pull_request_cannot_let_itself_be_shown_the_names(shop: Bench) -> None:
    """The permission is that of the prod of finance: neither a branch of finance nor the shop's own edit gives it."""
    add_repository(shop)
    shop.github.commit(FINANCE, "leak", {"config.yaml": SHOWN["config.yaml"]}, "Show", author="ann")
    shop.github.open_pull_request(FINANCE, "leak", "main", "Show", author="ann")
    number = shop.open({**FILTER, "config.yaml": SHOWN["config.yaml"]})
    shop.idle()

    assert [summary.name for summary in readers(shop, number)] == [""]


def test_repositories_of_another_owner_and_removed_ones_are_left_out(shop: Bench) -> None:
    shop.github.add_user("eve")
    add_repository(shop, "eve/finance", SHOWN)
    add_repository(shop)
    shop.github.remove_from_app(FINANCE)
    number = shop.open(FILTER)
    shop.idle()

    assert shop.record(number).state is PullState.PLANNED
    assert readers(shop, number) == ()


def test_a_column_that_nobody_else_reads_is_no_news(shop: Bench) -> None:
    shop.knobs(columns={"shop.orders": {"altered": ["price"]}})
    add_repository(shop, files=SHOWN)
    number = shop.open(FILTER)
    shop.idle()

    assert readers(shop, number) == ()


def test_a_lone_repository_has_no_catalog_read(bench: Bench) -> None:
    number = bench.open(FILTER)
    bench.idle()

    assert bench.record(number).state is PullState.PLANNED
    assert not bench.calls("docs")


def test_the_check_waits_for_an_owner_of_what_reads_the_change(make_bench: Callable[..., Bench]) -> None:
    """By CODEOWNERS of finance: whom the pull request itself names there counts for nothing."""
    rules = {"config.yaml": "gateways: {}\ncicd_bot: {rules: [{reader_owners: true}]}\n"}
    bench = make_bench({**PROJECT, **rules})
    bench.github.state.repositories[SHOP].private = True
    bench.github.add_user("fay")
    bench.github.set_permission(SHOP, "fay", "read")
    add_repository(bench, files={**REVENUE, "CODEOWNERS": "* @fay\n"})
    number = bench.open({**FILTER, "CODEOWNERS": "* @wim\n"})
    bench.idle()
    check = bench.checks(bench.head(number))["approval"]
    bench.review(number, author="ann")
    bench.idle()
    waiting = bench.conclusions(bench.head(number))["approval"]
    bench.review(number, author="fay")
    bench.idle()

    assert "`fay`, who owns what reads this in another project, is missing" in str(check.summary)
    assert (waiting, bench.conclusions(bench.head(number))["approval"]) == ("action_required", "success")


def open_finance(bench: Bench, branch: str, files: dict[str, str]) -> int:
    bench.github.commit(FINANCE, branch, files, branch, author="ann")
    return bench.github.open_pull_request(FINANCE, branch, "main", branch, author="ann")


def planned_runs(bench: Bench, number: int) -> int:
    """How often the scripted planner of finance planned a pull request."""
    calls = (bench.folder / "home" / FINANCE / "calls.jsonl").read_text()
    return calls.count(f'"argv": ["plan", "pr_{number}"')


def test_a_promotion_has_the_readers_pull_requests_planned_again_once(shop: Bench) -> None:
    """Those that change a reader of what was promoted, and no others; what is planned again promotes nothing."""
    add_repository(shop)
    reader = open_finance(shop, "reader", {"models/revenue.sql": "-- reads shop.orders.id\nSELECT 2 AS id\n"})
    other = open_finance(shop, "other", {"models/more.sql": "SELECT 1 AS x\n"})
    number = shop.open(FILTER)
    shop.idle()
    assert [planned_runs(shop, pull) for pull in (reader, other)] == [1, 1]
    shop.github.merge(SHOP, number, author="ann")
    shop.idle()

    assert shop.record(number).state is PullState.PROMOTED
    assert [planned_runs(shop, pull) for pull in (reader, other)] == [2, 1]
    record = shop.context.inbox.pulls.get(FINANCE, reader)
    assert (record.state, record.wishes.sources_moved) == (PullState.PLANNED, False)
    assert shop.context.inbox.prods.get(FINANCE).revision == 1


def test_a_failed_plan_of_a_reading_project_is_tried_again_when_a_column_came(shop: Bench) -> None:
    add_repository(shop)
    waiting = open_finance(shop, "waiting", {"models/more.sql": "BROKEN\n"})
    number = shop.open({"models/orders.sql": "SELECT 1 AS id, 2 AS new\n"})
    shop.knobs(columns={"shop.orders": {"added": ["new"]}})
    shop.idle()
    tries = planned_runs(shop, waiting)
    shop.github.merge(SHOP, number, author="ann")
    shop.idle()

    assert (tries, planned_runs(shop, waiting)) == (1, 2)
    assert shop.context.inbox.pulls.get(FINANCE, waiting).state is PullState.FAILED


def test_a_new_reader_is_shown_on_open_pull_requests_without_another_look(shop: Bench) -> None:
    add_repository(shop, files={**SHOWN, "models/revenue.sql": "SELECT 1 AS id\n"})
    number = shop.open(FILTER)
    shop.idle()
    assert readers(shop, number) == ()
    shop.github.commit(FINANCE, "main", {"models/revenue.sql": REVENUE["models/revenue.sql"]}, "Read", author="ann")
    shop.idle()

    assert "`shop.revenue`" in shop.plan(number)


def test_a_catalog_of_another_service_is_read_from_the_operators_file(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """With names as the file allows, and forgotten when the file names it no longer."""
    model = {"name": "f.revenue", "kind": "FULL", "parents": ["shop.orders"], "unfollowed": "Python", "owner": "@fay"}
    view = {"version": 1, "project": "f", "environment": "prod", "made_at": "", "models": [model]}
    (tmp_path / "finance.json").write_text(json.dumps(view))
    entry = {"project": "ann/elsewhere", "address": str(tmp_path / "finance.json"), "show_reads_to": [SHOP]}
    file = tmp_path / "catalogs.yaml"
    file.write_text(json.dumps([entry, {**entry, "project": "eve/elsewhere"}]))
    bench = make_bench(other_catalogs=file)
    bench.github.state.repositories[SHOP].private = True
    number = bench.open(FILTER)
    bench.idle()
    until(lambda: readers(bench, number))
    bench.idle()

    assert [(one.name, one.models, one.owners) for one in readers(bench, number)] == [("ann/elsewhere", 1, ("@fay",))]
    file.write_text("[]")
    OtherCatalogs(bench.context).fetch_due()
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()
    assert readers(bench, number) == ()


def test_a_repository_that_was_given_to_another_owner_is_left_out(shop: Bench) -> None:
    """Also before its webhook tells that: GitHub is asked each time."""
    add_repository(shop, files=SHOWN)
    shop.github.add_user("eve")
    shop.github.faults.drop("*", times=100)
    shop.github.move_repository(FINANCE, "eve/finance")
    shop.github.install_app("eve/finance")
    shop.github.faults.clear()
    number = shop.open(FILTER)
    shop.idle()

    assert shop.record(number).state is PullState.PLANNED
    assert readers(shop, number) == ()


def test_a_removed_repository_publishes_nothing_and_its_catalog_is_not_tried_for_ever(shop: Bench) -> None:
    add_repository(shop)
    shop.github.remove_from_app(FINANCE)
    shop.context.inbox.queue.wake(FINANCE, CATALOG)
    shop.idle()

    assert FINANCE not in shop.context.inbox.publications.list_keys()
