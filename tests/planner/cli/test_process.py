"""`mergeplan` as a process of its own, on a warm Spark: quiet, interruptible, and the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.planner.shop import FILES, write_shop
from tests.wire import check_line

ROOT = Path(__file__).parents[3]
MERGEPLAN = (sys.executable, "-m", "mergeplan.bot.main")
CONFIG = FILES["config.yaml"].replace(
    "concurrent_tasks: 2",
    "config: {spark.driver.memory: 700m, spark.sql.shuffle.partitions: 2, spark.master: 'local[2]'}",
)
DAYS = [f"2026-01-{day:02}" for day in range(1, 7)]
AT = ("--execution-time", "2026-01-07 05:00:00")


class Processes:
    """Starts `mergeplan` in a shop's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {**os.environ, "MERGEPLAN_HOME": str(root / "home"), "PYTHONPATH": str(ROOT)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*MERGEPLAN, *arguments], cwd=self.root, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A shop with a warm Spark, which ends in silence."""
    root = tmp_path_factory.mktemp("shop")
    write_shop(root, config=CONFIG, total="", shown="", apart="")
    processes = Processes(root)
    warm = processes.start("warm")
    assert warm.stdout is not None
    ready = warm.stdout.readline()
    assert ready.startswith("warm Spark ready on 127.0.0.1:"), warm.communicate(timeout=300)
    yield processes
    warm.send_signal(signal.SIGTERM)
    assert warm.communicate(timeout=300) == ("", "")
    assert warm.returncode == 0


def days(lines: list[dict[str, Any]]) -> list[str]:
    """The days of the batches that were done."""
    return [line["interval"][0] for line in lines if (line["event"], line.get("model")) == ("batch", "shop.daily")]


@pytest.mark.prove
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_an_interrupted_backfill_ends_with_130_and_the_next_one_goes_on(
    number: signal.Signals, processes: Processes
) -> None:
    environment = number.name.lower()
    plan = ("plan", environment, "--auto-apply", "--output", "json", *AT)
    write_shop(processes.root, daily=f"{FILES['models/daily.sql']} AND '{environment}' != ''")
    process = processes.start(*plan)
    assert process.stdout is not None
    before = []
    while len(days(before)) < 2:
        before.append(check_line(process.stdout.readline()))
    process.send_signal(number)
    rest, err = process.communicate(timeout=300)
    before += [check_line(line) for line in rest.splitlines()]

    code, out, _ = processes.run(*plan)
    after = [check_line(line) for line in out.splitlines()]

    assert (process.returncode, err) == (130, "")
    assert before[-2]["kind"] == "Cancelled"
    assert before[-1] == {"event": "result", "version": 1, "ok": False, "applied": False}
    assert (code, after[-1]["applied"]) == (0, True)
    assert sorted(days(before) + days(after)) == DAYS


@pytest.mark.prove
def test_nothing_but_what_was_asked_for_is_on_either_stream(processes: Processes) -> None:
    asked = ("fetchdf", "select count(*) as n from range(3)")

    assert processes.run(*asked) == (0, "   n\n0  3\n", "")
    code, out, err = processes.run("fetchdf", "select 1/0 as n")
    assert (code, out) == (1, "")
    assert err.startswith("Error: Division by zero.")
    assert err.count("\n") == 1


def test_without_an_answer_on_standard_input_nothing_is_applied(processes: Processes) -> None:
    code, out, err = processes.run("plan", "unasked", *AT)

    assert (code, err) == (0, "")
    assert out.endswith("[y/n]: \nNothing was applied.\n")
    assert "unasked" not in processes.run("environments")[1]


def test_a_spark_that_does_not_answer_is_told_in_a_sentence(processes: Processes, tmp_path: Path) -> None:
    write_shop(tmp_path, config=CONFIG.replace("type: spark", "type: spark, remote: 'sc://127.0.0.1:1'"))

    code, out, err = Processes(tmp_path).run("plan", "--auto-apply")

    assert code == 1
    assert err.splitlines()[-1].startswith("Error: sc://127.0.0.1:1 does not answer: ")
    assert "Traceback" not in err
    assert "Updating" not in out
