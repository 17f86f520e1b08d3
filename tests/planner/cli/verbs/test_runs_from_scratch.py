"""After whatever happens, a run leaves each FULL model with the rows that its query has over the tables as they are."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import rows

pytestmark = pytest.mark.prove
Shop = Callable[..., CommandLine]
QUERIES = {
    "top": "SELECT max(price) AS price FROM shop.items",
    "over": "SELECT price + 1 AS price FROM shop.seen",
    "sum": "SELECT count(*) AS n, sum(price) AS total FROM shop.daily",
    "both": "SELECT t.price, o.n FROM shop.within AS t CROSS JOIN shop.sum AS o",
}
FILES = {name: f"MODEL (name shop.{name}, kind FULL);\n{query}" for name, query in QUERIES.items()} | {
    "seen": "MODEL (name shop.seen, kind VIEW);\nSELECT price FROM shop.top",
    "within": "MODEL (name shop.within, kind EMBEDDED);\nSELECT price FROM shop.over",
}
SEED = "id,day,price\n1,2026-01-01,10\n2,2026-01-02,20\n3,2026-01-04,{}\n"
CASES = int(os.environ.get("MERGEPLAN_SEQUENCES", "0")) // 100 or 2


def act(rng: random.Random, mergeplan: CommandLine, engine: SparkEngine, at: str) -> str:
    """Do one thing that may change what a FULL model reads; returns what."""
    prod = mergeplan.state.environments.get("prod").snapshots
    kind = rng.choice(("nothing", "nothing", "seed", "query", "restate", "drop", "dev", "failed", "rollback"))
    model = rng.choice(sorted(QUERIES))
    apply = ("--auto-apply", "--execution-time", at)
    if kind == "seed":
        mergeplan.write("seeds/items.csv", SEED.format(rng.randrange(100)))
        mergeplan("plan", *apply)
    elif kind == "query":
        mergeplan.write("models/top.sql", FILES["top"].replace("max(price)", f"max(price) + {rng.randrange(3)}"))
        mergeplan("plan", *apply)
    elif kind == "restate":
        mergeplan(
            "plan", "--restate-model", rng.choice(("shop.daily", f"shop.{model}")), "--start", "2026-01-01", *apply
        )
    elif kind == "drop":
        engine.fetch(f"DROP TABLE {prod[f'shop.{model}'].table}")
    elif kind == "dev":
        mergeplan.write("models/sum.sql", FILES["sum"].replace("count(*)", f"count(*) + {rng.randrange(3)}"))
        mergeplan("plan", "dev", *apply)
        mergeplan("run", "dev", "--execution-time", at)
        mergeplan("plan", *apply)
    elif kind == "failed":
        mergeplan("run", "--select-model", f"shop.{model}", "--no-auto-upstream", "--execution-time", at)
    elif kind == "rollback":
        mergeplan("rollback", "prod", "--auto-apply")
    return f"{kind} {model}"


@pytest.mark.parametrize("seed", range(CASES))
def test_a_run_leaves_the_rows_of_a_fresh_build(seed: int, shop: Shop, engine: SparkEngine) -> None:
    rng, mergeplan = random.Random(seed), shop(shown="", apart="", total="", **FILES)  # noqa: S311 # reproducible
    now, done = datetime(2026, 1, 6, 5), list[str]()
    assert mergeplan("plan", "--auto-apply", "--execution-time", f"{now}").code == 0
    for _ in range(6):
        now += timedelta(days=rng.choice((0, 1)), hours=1)
        done.append(act(rng, mergeplan, engine, f"{now}"))
        now += timedelta(days=1)

        ran = mergeplan("run", "--execution-time", f"{now}")

        assert ran.code == 0, (done, ran.out, ran.err)
        for name in QUERIES:
            query = mergeplan.state.environments.get("prod").snapshots[f"shop.{name}"].model.sql
            query = query.replace("shop.within", "shop.over")
            assert rows(engine, f"SELECT * FROM shop.{name}") == rows(engine, query), (name, done)
