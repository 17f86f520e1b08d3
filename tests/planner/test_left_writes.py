"""A planner that is killed, or told to leave, while a Spark Connect server computes: the next one waits for that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner.state.store import StateStore
from tests.planner import runtimes
from tests.planner.runtimes import Runtime

pytestmark = pytest.mark.prove

PARENT = "MODEL (name shop.items, kind FULL);\nSELECT id, id % 7 AS k FROM range(100)\n"
SLOW = """MODEL (name shop.slow, kind {kind});
SELECT {ds} b.id % 3 AS g, count(DISTINCT sqrt(a.id * b.id)) AS n FROM range(0, 60000) AS a
CROSS JOIN shop.items AS b WHERE b.id < 90 GROUP BY ALL
"""
KINDS = {
    "FULL": ("FULL", ""),
    "time": ("INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 1)", "cast(@start_date AS date) AS ds,"),
    "key": ("INCREMENTAL_BY_UNIQUE_KEY (unique_key g)", ""),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Runtime]]:
    """A Spark Connect server, with the folder of its warehouse."""
    folder = tmp_path_factory.mktemp("server")
    with runtimes.connect_server(folder) as runtime:
        yield folder, runtime


class Shop:
    """A project on that server, in a schema of its own."""

    def __init__(self, folder: Path, server: tuple[Path, Runtime], kind: str) -> None:
        self.folder, (self.place, self.runtime) = folder, server
        self.schema = f"shop_{kind.lower()}_{time.time_ns()}"
        (folder / "models").mkdir(parents=True)
        (folder / "config.yaml").write_text(
            f"gateways: {{spark: {{connection: {{type: spark, {self.runtime.spark}}}}}}}\n"
            "model_defaults: {dialect: spark, start: 2026-01-01}\n"
        )
        kind_text, ds = KINDS[kind]
        for name, text in (("items", PARENT), ("slow", SLOW.format(kind=kind_text, ds=ds))):
            (folder / f"models/{name}.sql").write_text(text.replace("shop.", f"{self.schema}."))

    def plan(self) -> subprocess.Popen[str]:
        argv = ["-m", "mergeplan", "plan", "dev", "--auto-apply", "--execution-time", "2026-01-02 05:00:00"]
        environ = {**os.environ, **self.runtime.environ, "MERGEPLAN_CACHE": str(self.folder / "cache")}
        return subprocess.Popen(
            [sys.executable, *argv], cwd=self.folder, env=environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def exit_code_after(self, number: signal.Signals) -> int:
        """The exit code of a planner that gets a signal while its slow table is computed."""
        with self.plan() as child:
            while not self.batches():  # by then the server has the write
                assert child.poll() is None, child.stdout and child.stdout.read()
                time.sleep(0.2)
            os.killpg(child.pid, number)
            return child.wait(60)

    def running(self) -> list[str]:
        """The ids of the writes that may be running, as the name of a folder has them."""
        (state,) = [*self.folder.glob(".mergeplan/*.db")] or [None]
        if state is None:
            return []
        with closing(StateStore(f"sqlite:///{state}")) as store:
            writes = (write for table in store.tables.all() for write in store.running_writes.list_unfinished(table))
            return [write.operation.id.replace("-", "") for write in writes]

    def batches(self) -> list[str]:
        """The folders that batches of the slow table were written to."""
        folders = self.place.glob("warehouse/*/*slow*/mergeplan-*")
        return [path.name.removeprefix("mergeplan-") for path in folders if self.schema in str(path)]


@pytest.fixture(params=sorted(KINDS))
def shop(request: pytest.FixtureRequest, tmp_path: Path, server: tuple[Path, Runtime]) -> Shop:
    return Shop(tmp_path / "shop", server, request.param)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGUSR1, 138)])
def test_the_next_run_waits_for_what_spark_goes_on_with(shop: Shop, number: signal.Signals, code: int) -> None:
    assert shop.exit_code_after(number) == code
    left = shop.running()
    with shop.plan() as child:
        told = child.communicate(timeout=600)[0]
    assert child.returncode == 0, told
    assert "that an earlier run began on Spark" in told
    assert (shop.running(), shop.batches()) == ([], left)


def test_a_planner_that_is_cancelled_leaves_nothing(shop: Shop) -> None:
    assert shop.exit_code_after(signal.SIGTERM) == 130
    assert shop.running() == []
    with shop.plan() as child:
        told = child.communicate(timeout=600)[0]
    assert child.returncode == 0, told
    assert "an earlier run" not in told
