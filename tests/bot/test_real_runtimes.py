"""The line of a pull request on what teams run Spark on: planned, built, and merged with nothing computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bot.conftest import SHOP, Bench
from tests.bot.test_real_planner import assert_merged_for_nothing
from tests.planner.conftest import postgresql  # noqa: F401 - a fixture
from tests.planner.runtimes import MODEL, Runtime, write_shop
from tests.planner.test_runtimes import runtime  # noqa: F401 - a fixture

pytestmark = pytest.mark.prove


def test_a_pull_request_is_planned_built_and_merged_there(
    runtime: Runtime,  # noqa: F811
    make_bench: Callable[..., Bench],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in runtime.environ.items():
        monkeypatch.setenv(name, value)
    shop = tmp_path / "shop"
    write_shop(shop, runtime)
    project = {str(path.relative_to(shop)): path.read_text() for path in shop.rglob("*.*") if path.is_file()}
    allowed = (*runtime.environ, "MERGEPLAN_SPARK_PROFILE")

    bench = make_bench(project=project, planner_command=(), patience=900.0, planner_environment=allowed)
    assert bench.context.inbox.prods.get(SHOP).revision == 1

    number = bench.open({MODEL: bench.github.read(SHOP, MODEL).replace("  item_id,\n", "  item_id,\n  'z' AS new,\n")})
    bench.idle()
    assert "1 non-breaking" in bench.plan(number), bench.plan(number)
    assert_merged_for_nothing(bench, number, revision=2)
