"""The bot's pace on a quiet pull request: webhook to plan comment, to a built environment, merge to promoted.

make bench-bot                       8 models
python -m benchmarks.bot_pace 200    another number of models

A sandbox is the GitHub, `mergeplan serve` is the bot, with a warm Spark and GitHub's second between two writes. Prints
the times of each round and their medians, the API calls and writes of a pull request's life (opened, planned, built,
merged, promoted), and of the last round where the time sits, by the bot's own log.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from mergeplan_sandbox.server import Sandbox

SHOP, SECRET, PATIENCE, ROUNDS = "ann/shop", "a-webhook-secret", 600.0, 11
TICKS = os.sysconf("SC_CLK_TCK")
NOT_TOLD = ("event", "level", "timestamp", "repository", "pull_request", "head", "run", "key")


def project(size: int) -> dict[str, str]:
    """Models in layers, each reading one or two of those before it."""
    files = {"config.yaml": "gateways:\n  spark:\n    connection:\n      type: spark\n"}
    for number in range(size):
        one, other = (f"shop.m{number - back}" if number >= back else "" for back in (1, 2))
        source = f"FROM {one} AS a" if one else "FROM RANGE(1000) AS a"
        source += f" JOIN {other} AS b ON a.id = b.id" if other and number % 3 == 0 else ""
        body = f"SELECT a.id, {'a.x' if one else 'a.id * 2'} + {number} AS x, {number} AS c{number}\n{source}\n"
        files[f"models/m{number}.sql"] = f"MODEL (name shop.m{number}, kind FULL);\n\n{body}"
    return files


@dataclass
class Scene:
    """A sandbox with a bot beside it."""

    github: Sandbox
    service: subprocess.Popen[bytes]
    log: Path
    size: int
    times: dict[str, list[float]] = field(default_factory=dict)
    calls: list[tuple[int, int, int]] = field(default_factory=list)  # of each life: all, writes, answered with 304

    def wait(self, what: str, holds: Callable[[], object]) -> None:
        """Returns when it is so."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if self.service.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"Waited for {what}. The service's log is {self.log}.")
            time.sleep(0.01)

    def seconds(self, what: str, holds: Callable[[], object], since: float) -> None:
        """Waits until it is so and keeps how long it took."""
        self.wait(what, holds)
        self.times.setdefault(what, []).append(time.time() - since)

    def lines(self) -> list[dict[str, Any]]:
        """The bot's log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def body(self, number: int) -> str:
        """The plan comment's text."""
        said = self.github.comments(SHOP, number)
        return next((comment.body for comment in said if comment.author == self.github.bot_login), "")

    def check(self, number: int, name: str) -> str:
        """What one check has concluded."""
        run = self.github.checks(SHOP, self.github.pull_request(SHOP, number).head_sha).get(f"mergeplan / {name}")
        return (run.conclusion or "") if run else ""

    def is_idle(self) -> bool:
        """True when nothing was said for a while: the next round begins quiet."""
        return time.time() - self.log.stat().st_mtime > 4.0


@contextmanager
def scene(folder: Path, size: int) -> Iterator[Scene]:
    """The sandbox and the service, ended afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    log = folder / "service.log"
    with Sandbox(folder / "github", webhook_url=f"http://127.0.0.1:{port}/webhook", secret=SECRET) as github:
        environ = {
            **os.environ,
            "MERGEPLAN_WEBHOOK_SECRET": SECRET,
            "MERGEPLAN_GITHUB_API_URL": github.url,
            "MERGEPLAN_GITHUB_APP_ID": str(github.app_id),
            "MERGEPLAN_GITHUB_PRIVATE_KEY": github.app_private_key,
            "MERGEPLAN_HOME": str(folder / "home"),
            "MERGEPLAN_PORT": str(port),
        }
        argv = [sys.executable, "-m", "mergeplan.bot.main", "serve"]
        with log.open("ab") as errors:
            service = subprocess.Popen(argv, env=environ, stderr=errors, stdout=errors)
        try:
            yield Scene(github, service, log, size)
        finally:
            service.terminate()
            service.wait(120)


def prepare(scene: Scene) -> None:
    """A repository whose prod is built."""
    scene.github.add_user("ann")
    scene.github.create_repository(SHOP, project(scene.size))
    scene.github.install_app(SHOP)
    scene.wait("prod's first build", lambda: any(_is_plans_end(line) for line in scene.lines()))
    scene.wait("a quiet start", scene.is_idle)


def _is_plans_end(line: dict[str, Any]) -> bool:
    return line["event"] == "planner_ended" and str(line["run"]).endswith("-plan")


def play(scene: Scene, turn: int) -> float:
    """One pull request from its opening to prod; when it was opened."""
    name = f"models/m{scene.size - 2}.sql"
    text = project(scene.size)[name].replace("SELECT ", f"SELECT {turn} AS added{turn}, ")
    scene.github.commit(SHOP, f"change{turn}", {name: text}, "Add a column", author="ann")
    opened, before = time.time(), len(scene.github.calls)
    number = scene.github.open_pull_request(SHOP, f"change{turn}", "main", "Add a column", author="ann")
    scene.seconds("webhook to plan comment", lambda: "to compute" in scene.body(number).lower() or
                  "mergeplan:plan" in scene.body(number), opened)  # fmt: skip
    scene.seconds("webhook to environment built", lambda: scene.check(number, "environment"), opened)
    scene.wait("quiet", scene.is_idle)
    merged = time.time()
    scene.github.merge(SHOP, number, author="ann")
    scene.seconds("merge to promoted", lambda: "promoted" in scene.body(number).lower().split("\n\n")[0], merged)
    scene.wait("quiet", scene.is_idle)
    made = scene.github.calls[before:]
    scene.calls.append((len(made), sum(c.method != "GET" for c in made), sum(c.status == 304 for c in made)))
    return opened


def print_profile(scene: Scene, since: float) -> None:
    """The bot's log as a profile: when, how long after the line before, what."""
    before = since
    for line in scene.lines():
        at = datetime.fromisoformat(line["timestamp"].replace("Z", "+00:00")).timestamp()
        if at < since:
            continue
        more = "  ".join(f"{key}={value}" for key, value in line.items() if key not in NOT_TOLD)
        print(f"  {at - since:7.2f} s  +{at - before:5.2f}  {line['event']:20} {more[:110]}")
        before = at


ASKING = """
import sys, time
began, calls = time.time(), []
from pyspark.sql.connect.client import SparkConnectClient as Client
def timed(name):
    plain = getattr(Client, name)
    def call(self, *arguments, **more):
        at = time.time()
        try:
            return plain(self, *arguments, **more)
        finally:
            sql = " ".join(str(arguments[:1])[:4000].split())[-90:]
            calls.append((at - began, time.time() - at, name.strip("_"), sql))
    setattr(Client, name, call)
for name in ("execute_command", "to_table", "to_pandas", "_analyze", "config"):
    timed(name)
from mergeplan.planner.cli.main import run, VERBS
code = run(VERBS)
for at, took, name, what in sorted(calls):
    sys.stderr.write(f"  {at:6.2f} s  took {took:5.2f}  {name:16} {what}\\n")
total = sum(took for _, took, _, _ in calls)
sys.stderr.write(f"  {len(calls)} questions, {total:.2f} s of {time.time() - began:.2f} s\\n")
raise SystemExit(code)
"""


def questions(scene: Scene, folder: Path) -> None:
    """What one more plan asks of the same warm Spark, question by question."""
    for name, text in project(scene.size).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("SELECT ", "SELECT 'asked' AS asked, ") if f"m{scene.size - 2}." in name else text)
    home = folder.parent / "home" / SHOP
    environ = {**os.environ, "MERGEPLAN_HOME": str(home), "MERGEPLAN_PROJECT": SHOP}
    argv = [sys.executable, "-c", ASKING, "plan", "asked", "--auto-apply", "--output", "json"]
    ran = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    print("What such a plan asks of Spark:")
    print(ran.stderr.rstrip())


def main(size: int) -> None:
    """A few pull requests, one after the other."""
    with tempfile.TemporaryDirectory() as scratch, scene(Path(scratch), size) as made:
        prepare(made)
        for turn in range(ROUNDS):
            opened = play(made, turn)
            print(f"round {turn}: " + ", ".join(f"{what} {values[-1]:.1f} s" for what, values in made.times.items()))
        print("The last round, by the bot's log:")
        print_profile(made, opened)
        questions(made, Path(scratch) / "asked")
    print(f"{size} models, medians without the first round:")
    for what, series in made.times.items():
        print(f"  {what:30} {statistics.median(series[1:]):5.1f} s")
    for index, what in enumerate(("API calls of a life", "of them writes", "of them answered 304")):
        print(f"  {what:30} {statistics.median(values[index] for values in made.calls[1:]):5.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
