"""Eleven hostile pull requests at once, beside an ordinary one: the planner itself, two workers, one Spark.

The limit of one pull request is `limits.SECONDS` of the processor's time for a file (10 for a template): however it
ends, a worker is free again after that. So whoever waits behind eleven, with two workers, waits for six limits at most.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.records import PullState
from mergeplan.planner.limits import SECONDS
from tests.bot.conftest import SHOP, Bench
from tests.bot.test_bombs import BOMBS as YAML
from tests.bot.test_real_planner import BARE

HEAD = "MODEL (\n  name shop.bomb,\n  kind FULL\n);\n\n"
BEGIN, END = f"{HEAD}JINJA_QUERY_BEGIN;\nSELECT 1 AS id ", "\nJINJA_END;\n"
CONFIG, MODEL, EXTERNAL = "config.yaml", "models/bomb.sql", "external_models.yaml"
DOUBLING = '{% set ns = namespace(a="aaaaaaaa") %}{% for i in range(40) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}'
RUNS_ON = '{% for i in range(99999) %}{% set a = ("b" * 900000)|replace("b", "cc")|length %}{% endfor %}'
LONG_NAME = f"models/{'x' * 300}.sql"
# what is pushed, and what is said of it
BOMBS: dict[str, tuple[dict[str, str], str]] = {
    "nested YAML": ({CONFIG: f"{BARE[CONFIG]}{YAML['brackets']}"}, "nested more than 100 deep"),
    "merged YAML": ({CONFIG: f"{BARE[CONFIG]}{YAML['merges']}"}, "more than 1000000 values"),
    "memory of a template": ({MODEL: f"{BEGIN}{DOUBLING}{END}"}, "256 MiB of memory"),
    "time of a template": ({MODEL: f"{BEGIN}{RUNS_ON}{END}"}, "10 seconds of the processor's time"),
    "one call of a template": ({MODEL: f'{BEGIN}{{{{ "a".center(3000000000)|length }}}}{END}'}, "256 MiB of memory"),
    "nested SQL": ({MODEL: f"{HEAD}SELECT {'(' * 50_000}1{')' * 50_000} AS id\n"}, "nested too deeply"),
    "a long number": ({EXTERNAL: "x: " + "9" * 1_000_000}, "longer than 1000 characters"),
    "a text for a slow pattern": ({CONFIG: f"{BARE[CONFIG]}x: " + "{{ env_var('A' , '\"" * 20_000}, "`"),
    "an enormous file": ({EXTERNAL: "- name: a.b\n  columns: {id: int}\n" * 500_000}, "more than 16000000 characters"),
    "a long sum": ({MODEL: f"{HEAD}SELECT {' + '.join(['1'] * 100_000)} AS id\n"}, "more than 20,000 operators"),
    "a name for no disk": ({LONG_NAME: "SELECT 1 AS id\n"}, "file name too long"),
}


def resident() -> int:
    """The bytes of memory that this process, the service, has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def is_planned(bench: Bench, number: int) -> bool:
    return bench.record(number).state in (PullState.PLANNED, PullState.FAILED)


@pytest.mark.prove
def test_bombs_delay_nobody_beyond_their_limits_and_each_ends_at_its_file(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(project=BARE, planner_command=(), warm=True, patience=len(BOMBS) * SECONDS)
    before, began = resident(), time.monotonic()  # with the sandbox, which holds the texts that are pushed
    numbers = {name: bench.open(files, f"bomb-{at}") for at, (name, (files, _)) in enumerate(BOMBS.items())}
    ordinary = bench.open({"models/more.sql": "MODEL (name shop.more, kind VIEW);\nSELECT 1 AS id\n"}, "ordinary")
    while not is_planned(bench, ordinary):
        assert time.monotonic() - began < len(BOMBS) / bench.settings.workers * SECONDS
        time.sleep(0.2)
    waited = time.monotonic() - began
    bench.idle()

    print(f"\nordinary: {waited:.0f} s, all: {time.monotonic() - began:.0f} s, +{(resident() - before) >> 20} MiB")  # noqa: T201
    assert bench.record(ordinary).state is PullState.PLANNED
    for name, number in numbers.items():
        files, said = BOMBS[name]
        assert_ended(bench, number, next(iter(files)), said)
    assert resident() - before < 300 << 20


def assert_ended(bench: Bench, number: int, path: str, said: str) -> None:
    """The pull request has failed with a finding at that file, and no check of it is in progress."""
    checks = bench.checks(bench.head(number))
    marks = checks["plan"].annotations

    assert bench.record(number).state is PullState.FAILED, said
    assert {run.status for run in checks.values()} == {"completed"}
    assert any(mark.path[:200] == path[:200] for mark in marks), (path, marks)
    assert said in bench.plan(number)
    assert "Traceback" not in bench.plan(number)
    assert bench.github.pull_request(SHOP, number).state == "open"
