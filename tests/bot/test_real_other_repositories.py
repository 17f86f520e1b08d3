"""Two repositories on one Spark with the planner itself: a change in `core` and those in `finance` that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mergeplan.bot.records import PullState
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.bot.conftest import SHOP, Bench
from tests.bot.test_other_repositories import FINANCE, add_repository, open_finance, readers
from tests.planner import runtimes

pytestmark = pytest.mark.prove

CONFIG = """gateways: {{spark: {{connection: {{type: spark, {spark}}}}}}}
model_defaults: {{dialect: spark, start: 2026-01-01}}
cicd_bot: {{show_reads_to: [{shown_to}]}}
"""
ORDERS = """MODEL (name core.orders, kind FULL);
SELECT id, {amount} AS amount, {note} AS note{more} FROM VALUES (1, 10), (2, 20) AS t(id, price)
"""
REVENUE = """MODEL (name finance.revenue, kind FULL, owner fay);
SELECT {columns} FROM core.orders
"""


TOTAL = "SUM(amount) AS total"


def orders(amount: str = "price", note: str = "'a'", more: str = "") -> dict[str, str]:
    return {"models/orders.sql": ORDERS.format(amount=amount, note=note, more=more)}


def revenue(columns: str = TOTAL, tax: str = "") -> dict[str, str]:
    declared = f"- name: core.orders\n  columns: {{id: int, amount: int, note: string{tax}}}\n"
    return {"models/revenue.sql": REVENUE.format(columns=columns), "external_models.yaml": declared}


@pytest.fixture(name="fetch")
def _fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[tuple[Any, ...], ...]]]:
    """A Spark Connect server for both repositories, and what a query of it returns."""
    with runtimes.connect_server(tmp_path) as runtime:
        for name, value in runtime.environ.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "asks").mkdir()
        (tmp_path / "asks" / "config.yaml").write_text(CONFIG.format(spark=runtime.spark, shown_to=""))
        with Session(SessionSettings(tmp_path / "asks")) as session:
            yield lambda query: session.fetch(query).rows


@pytest.fixture(name="bench")
def _bench(make_bench: Callable[..., Bench], fetch: object, tmp_path: Path) -> Bench:
    """`core` is the shop, and lets nobody see its names; `finance` lets the shop see its own."""
    config = (tmp_path / "asks" / "config.yaml").read_text()
    allowed = ("SPARK_TOKEN", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
    bench = make_bench({"config.yaml": config, **orders()}, planner_command=(), patience=900.0,
                       planner_environment=allowed)  # fmt: skip
    bench.github.state.repositories[SHOP].private = True
    shown = config.replace("show_reads_to: []", f"show_reads_to: [{SHOP}]")
    add_repository(bench, files={"config.yaml": shown, **revenue()})
    return bench


def test_a_change_in_core_names_its_readers_in_finance_and_their_pull_requests_see_it_once_merged(
    bench: Bench, fetch: Callable[[str], tuple[tuple[Any, ...], ...]]
) -> None:
    amount = bench.open(orders(amount="price * 3", more=", 9 AS tax"), "amount")
    note = bench.open(orders(note="'b'"), "note")
    built = open_finance(bench, "built", revenue(f"{TOTAL}, COUNT(*) AS n"))
    waiting = open_finance(bench, "waiting", revenue(f"{TOTAL}, MAX(tax) AS tax", ", tax: int"))
    bench.idle()
    pulls = bench.context.inbox.pulls

    (summary,) = readers(bench, amount)
    assert [(one.reader, one.columns, one.owner) for one in summary.readings] == [
        ("finance.revenue", ("amount",), "fay")
    ]
    assert "🟠 Indirect breaking" in bench.plan(amount)
    assert (readers(bench, note), "finance" in bench.plan(note)) == ((), False)
    assert [pulls.get(FINANCE, number).state for number in (built, waiting)] == [PullState.PLANNED, PullState.FAILED]
    assert fetch(f"SELECT * FROM finance__pr_{built}.revenue") == ((30, 2),)
    for number, total in ((amount, 90), (note, 30)):  # what the reader would compute on top of each
        assert fetch(f"SELECT SUM(amount) FROM core__pr_{number}.orders") == ((total,),)

    bench.github.merge(SHOP, amount, author="ann")
    bench.idle()
    assert [pulls.get(FINANCE, number).state for number in (built, waiting)] == [PullState.PLANNED] * 2
    assert fetch(f"SELECT * FROM finance__pr_{waiting}.revenue") == ((90, 9),)
    assert fetch(f"SELECT * FROM finance__pr_{built}.revenue") == ((30, 2),)  # it was built before
    (body,) = (comment.body for comment in bench.github.comments(FINANCE, built) if "mergeplan:plan" in comment.body)
    assert "`core.orders` changed in another project at " in body
    assert "`/restate core.orders` computes them again." in body
    assert pulls.get(FINANCE, waiting).nearby.moved == ()  # it had computed nothing
    bench.github.comment(FINANCE, built, "/restate core.orders", author="ann")
    bench.idle()
    assert fetch(f"SELECT * FROM finance__pr_{built}.revenue") == ((90, 2),)
    assert fetch("SELECT * FROM finance.revenue") == ((30,),)
    bench.github.merge(FINANCE, waiting, author="ann")
    bench.idle()
    assert fetch("SELECT * FROM finance.revenue") == ((90, 9),)
