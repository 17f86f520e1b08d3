"""The bot's pace in a large repository: the hub of 1,000 models is edited, webhook to plan comment.

make bench-bot                       1,000 models, after the small repository of `bot_pace`
python -m benchmarks.bot_hub 200     another number of models

Prod is in the state alone, as if it had been built, so that this times the bot and the child that plans, and not Spark.
Prints seconds on the clock and CPU seconds of the service and of its children in Python, and where the time sits.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bot_pace import SHOP, Scene, print_profile, scene
from benchmarks.plan_command import COLUMN
from benchmarks.projects import HUB, write_project

ROUNDS = 4
TICKS = os.sysconf("SC_CLK_TCK")


def write_prod(folder: Path, size: int) -> dict[str, str]:
    """The files of a project that the state of the service in this folder has in prod."""
    root, home = folder / "project", folder / "home" / SHOP
    root.mkdir()
    write_project(root, size)
    environ = {**os.environ, "MERGEPLAN_HOME": str(home), "MERGEPLAN_PROJECT": SHOP}
    subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root), "--columns"], env=environ, check=True)
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix in (".sql", ".yaml"))
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def prepare(made: Scene, files: dict[str, str]) -> None:
    """A repository whose prod is what the state says."""
    made.github.add_user("ann")
    made.github.create_repository(SHOP, files)
    made.github.install_app(SHOP)
    made.wait("prod's plan", lambda: any(line["event"] == "planner_ended" for line in made.lines()))
    made.wait("a quiet start", made.is_idle)


def seconds_of(service: int) -> tuple[float, float]:
    """CPU seconds of the service so far, and of its children in Python, those that ended among them."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    own, ended = _ticks(service)
    waiting, children = [service], ended
    while waiting:
        parent = waiting.pop()
        for pid, ppid, name in rows:
            if int(ppid) == parent and "java" not in name:
                children += sum(_ticks(int(pid)))
                waiting.append(int(pid))
    return own / TICKS, children / TICKS


def _ticks(pid: int) -> tuple[int, int]:
    """What a process took itself, and its children that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))


def play(made: Scene, files: dict[str, str], turn: int) -> tuple[float, float, float, float]:
    """One pull request that edits the hub: when it was opened, the seconds until its plan is shown, and CPU seconds."""
    name = f"models/{HUB.replace('.', '/')}.sql"
    text = files[name].replace(COLUMN[0], COLUMN[1].replace("more", f"more{turn}"), 1)
    made.github.commit(SHOP, f"hub{turn}", {name: text}, "Add a column to the hub", author="ann")
    before, opened = seconds_of(made.service.pid), time.time()
    number = made.github.open_pull_request(SHOP, f"hub{turn}", "main", "Add a column to the hub", author="ann")
    made.wait("the plan", lambda: "mergeplan:plan" in made.body(number) and HUB in made.body(number))
    taken = time.time() - opened
    after = seconds_of(made.service.pid)
    made.github.close(SHOP, number, author="ann")
    made.wait("quiet", made.is_idle)
    return opened, taken, after[0] - before[0], after[1] - before[1]


def main(size: int) -> None:
    """A few pull requests, one after the other, each closed again."""
    with tempfile.TemporaryDirectory() as scratch:
        files = write_prod(Path(scratch), size)
        with scene(Path(scratch), size) as made:
            prepare(made, files)
            rounds = []
            for turn in range(ROUNDS):
                rounds.append(play(made, files, turn))
                print("round {}: {:.1f} s; CPU: service {:.2f} s, children {:.2f} s".format(turn, *rounds[-1][1:]))
            print("The last round, by the bot's log:")
            print_profile(made, rounds[-1][0])
    medians = [statistics.median(figures[at] for figures in rounds[1:]) for at in (1, 2, 3)]
    print(f"{size} models, hub edited, medians without the first round:")
    print("  webhook to plan comment {:.1f} s; CPU: service {:.2f} s, children {:.2f} s".format(*medians))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
