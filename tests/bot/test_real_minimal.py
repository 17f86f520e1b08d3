"""A pull request computes the least that is right: told in its comment, and held by its merge, with Spark at work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.records import PullRecord
from tests.bot.conftest import SHOP, Bench
from tests.bot.test_real_planner import EXAMPLE, assert_merged_for_nothing

pytestmark = pytest.mark.prove

FULL = "MODEL (name shop.{}, kind FULL);\n{}\n"
ORDERS = "WITH raw AS (SELECT id, item_id, id * 10 AS price FROM shop.sales)\nSELECT id, item_id, price FROM raw AS r"
SALES = "MODEL (name shop.sales, kind SEED (path '../seeds/seed_data.csv'), columns (id INT, item_id INT));\n"
PROJECT = {
    "config.yaml": (EXAMPLE / "config.yaml").read_text(),
    "seeds/seed_data.csv": (EXAMPLE / "seeds/seed_data.csv").read_text(),
    "models/sales.sql": SALES,
    "models/orders.sql": FULL.format("orders", ORDERS),
    "models/items.sql": FULL.format("items", "SELECT item_id, count(*) AS n FROM shop.orders GROUP BY item_id"),
    "models/most.sql": FULL.format("most", "SELECT max(n) AS most FROM shop.items"),
    "models/takings.sql": FULL.format("takings", "SELECT sum(price) AS takings FROM shop.orders"),
}


@pytest.fixture(name="shop")
def _shop(make_bench: Callable[..., Bench]) -> Bench:
    """A bench whose prod Spark has built."""
    bench = make_bench(project=PROJECT, planner_command=(), warm=True, patience=900.0)
    assert bench.context.inbox.prods.get(SHOP).revision == 1
    return bench


def edit_pull(bench: Bench, branch: str, old: str, new: str) -> tuple[PullRecord, str]:
    """A planned and built pull request with this edit of `orders`, and its comment."""
    text = bench.github.read(SHOP, "models/orders.sql")
    assert old in text
    number = bench.open({"models/orders.sql": text.replace(old, new)}, branch)
    bench.idle()
    return bench.record(number), bench.plan(number)


def models_computed(record: PullRecord) -> set[str]:
    assert record.outcome
    assert record.outcome.plan
    return {model.name for model in record.outcome.plan.models if model.intervals}


def row(comment: str, model: str) -> list[str]:
    """A model's line in the comment's table: category, why, what is computed, whose table."""
    plain = comment.replace("<wbr>", "").replace("<code>", "`").replace("</code>", "`").replace("\\_", "_")
    lines = plain.partition("| Model | Why | Computed |")[2].split("\n")
    line = next(line for line in lines if line.startswith((f"| `{model}`<br>", f"| [`{model}`](")))
    named, why, work = (cell.strip() for cell in line.strip("|").split(" | "))
    return [named.partition("<br>")[2], why, *work.split("<br>")]


def assert_promise_kept(bench: Bench, planned: PullRecord, revision: int) -> None:
    """The merge computes nothing and puts in place what the pull request promised."""
    assert_merged_for_nothing(bench, planned.number, revision)
    merged = bench.record(planned.number)
    assert planned.outcome and planned.outcome.plan
    assert merged.promotion.outcome and merged.promotion.outcome.plan
    assert merged.promotion.outcome.plan.digest == planned.outcome.plan.digest
    assert "had moved" not in bench.plan(planned.number)


def test_only_what_must_be_is_computed_and_the_comment_says_why(shop: Bench) -> None:
    """Behaviours 32, 40: a renaming, one column, the same data; each merge finds its digest unchanged."""
    record, comment = edit_pull(shop, "renamed", ORDERS, ORDERS.replace("raw", "picked").replace(" AS r", " AS p"))
    assert models_computed(record) == set()
    assert "1 equivalent" in comment
    assert row(comment, "shop.orders") == [
        "⚪ Equivalent", "The new text means the same query. <sub>`same-query`</sub>",
        "nothing", "table shared with `prod`",
    ]  # fmt: skip
    assert_promise_kept(shop, record, revision=2)

    record, comment = edit_pull(shop, "dearer", "id * 10 AS price", "id * 11 AS price")
    assert models_computed(record) == {"shop.orders", "shop.takings"}
    assert "1 breaking, 1 indirect breaking, 2 indirect non-breaking" in comment
    assert row(comment, "shop.takings")[1:] == [
        "Reads `shop.orders.price`, which changed. Alters `takings`. <sub>`reads-changed-column`</sub>",
        "the whole table", "a table of its own",
    ]  # fmt: skip
    assert row(comment, "shop.items") == [
        "⚪ Indirect non-breaking",
        "Reads only `item_id` of `shop.orders`, which alters `price`. <sub>`reads-nothing-changed`</sub>",
        "nothing", "table shared with `prod`",
    ]  # fmt: skip
    assert_promise_kept(shop, record, revision=3)

    record, comment = edit_pull(shop, "same", "SELECT id, item_id, id", "SELECT id, abs(item_id) AS item_id, id")
    assert models_computed(record) == {"shop.orders"}
    assert "**2 models were not computed.** Computed again, `shop.orders` holds the same rows as before" in comment
    assert "That saved about" in comment
    assert row(comment, "shop.items")[1:] == [
        "Computed again, `shop.orders` holds the same rows as before in `item_id`. <sub>`same-data`</sub>",
        "nothing: inputs unchanged", "table shared with `prod`",
    ]  # fmt: skip
    assert row(comment, "shop.most")[2:] == ["nothing: inputs unchanged", "table shared with `prod`"]
    assert_promise_kept(shop, record, revision=4)
