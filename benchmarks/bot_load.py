"""The bot under load: twenty pull requests at once, an hour of a hundred repositories, and a bad night.

make bench-load                                     all of it, as the guide to deployment has it (three hours)
python -m benchmarks.bot_load burst [OPTIONS]       `--pulls` opened at once, in one repository and in as many
python -m benchmarks.bot_load hour [OPTIONS]        `--an-hour` pull requests for `--minutes`: opened, pushed to, closed
python -m benchmarks.bot_load night [OPTIONS]       one of two services killed, PostgreSQL ended, a hung planner

Services and planner children are real; only Spark is not (`load_planner`), and GitHub is the sandbox, whose CPU seconds
are printed apart: it runs on the same processors. Every pull request adds a column to the hub, which a sixth of all
models read.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.error import URLError

from benchmarks.load_scene import OWNER, Scene, Service, Size, open_scene

CORES = len(os.sched_getaffinity(0))
AGE, CLAIMED = "mergeplan_queue_age_seconds", "mergeplan_jobs_claimed"
LOOK_SECONDS, SAMPLE_SECONDS = 0.02, 5.0


# --- what is waited for ---


@dataclass
class Waiting:
    """A plan that a comment is to show; `shown_after` are the seconds that it took."""

    name: str
    number: int
    word: str
    since: float
    shown_after: float = 0.0


class Watch:
    """Looks for plans in comments, in a thread of its own, and notes when each was shown."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Waiting] = []
        self.shown: list[Waiting] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def add(self, name: str, number: int, word: str, since: float) -> None:
        with self._lock:
            self._waiting.append(Waiting(name, number, word, since))

    def forget(self, name: str, number: int) -> None:
        """Wait no longer for plans of a pull request: a later push or its end took their place."""
        with self._lock:
            self._waiting = [one for one in self._waiting if (one.name, one.number) != (name, number)]

    @property
    def open(self) -> int:
        return len(self._waiting)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            with self._lock:
                for one in tuple(self._waiting):
                    if self._scene.has_plan(one.name, one.number, one.word):
                        one.shown_after = time.monotonic() - one.since
                        self._waiting.remove(one)
                        self.shown.append(one)


@dataclass
class Taken:
    """CPU seconds, and writes to GitHub, over some time."""

    service: float = 0.0
    children: float = 0.0
    sandbox: float = 0.0
    writes: int = 0
    seconds: float = 0.0

    @property
    def work(self) -> float:
        return self.service + self.children

    def __str__(self) -> str:
        return (
            f"CPU: services {self.service:.1f} s, children {self.children:.1f} s; sandbox and this driver "
            f"{self.sandbox:.1f} s; {self.writes} writes to GitHub"
        )


@contextmanager
def measure(scene: Scene) -> Iterator[Taken]:
    """Yield what is filled at the end with what was taken meanwhile; a killed service's share is lost."""
    taken, began = Taken(), time.monotonic()
    before = {service.process.pid: service.cpu() for service in scene.services}
    driver_seconds, writes = time.process_time(), scene.count_writes()
    yield taken
    for service in scene.services:
        now, then = service.cpu(), before.get(service.process.pid, (0.0, 0.0))
        taken.service += now[0] - then[0]
        taken.children += now[1] - then[1]
    taken.sandbox, taken.writes = time.process_time() - driver_seconds, scene.count_writes() - writes
    taken.seconds = time.monotonic() - began


# --- a burst ---


@dataclass
class Burst:
    """Pull requests opened at once: when each had its plan, what it took, and what else was answered meanwhile."""

    seconds: list[float]
    taken: Taken
    overtaken: int  # the most places that one lost against the order in which they were opened
    help_seconds: float
    slowest_page: float
    twice: int  # pull requests with more than one plan comment

    def print(self, title: str, spacing: float) -> None:
        ordered = sorted(self.seconds)
        bound = self.taken.work / CORES + 1
        print(f"{title}: {len(ordered)} plans")
        print(f"  seconds to comment: {describe(ordered)}; p99 {quantile(ordered, 0.99):.1f}")
        print(f"  {self.taken}")
        print(f"  work / {CORES} cores + 1 s = {bound:.1f} s: the last is at x {ordered[-1] / bound:.2f} of it")
        print(f"  GitHub's seconds between writes: {self.taken.writes * spacing:.0f} s for all that was written")
        print(f"  overtaken by at most {self.overtaken} places; a `/help` elsewhere {self.help_seconds:.1f} s; "
              f"slowest page {self.slowest_page * 1000:.0f} ms; comments twice: {self.twice}", flush=True)  # fmt: skip


def describe(values: Sequence[float]) -> str:
    return f"{min(values):.1f} / {statistics.median(values):.1f} / {max(values):.1f} (min / median / max)"


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def run_burst(
    scene: Scene, names: Sequence[str], tag: str, during: Callable[[], None] = lambda: None, hung: int = 0
) -> Burst:
    """Open a pull request in each of the named repositories (one may be named again), and wait for all plans.

    `hung` jobs are worked on before and after.
    """
    words = [f"{tag}{index}" for index in range(len(names))]
    for name, word in zip(names, words, strict=True):
        scene.edit(name, word)
    quiet_name, quiet_number = scene.names[-1], open_quiet(scene, f"{tag}quiet")
    settle(scene, hung)
    watch, pages = Watch(scene), Pages(scene.services[0])
    numbers, help_seconds = list[int](), list[float]()
    with measure(scene) as taken:
        for name, word in zip(names, words, strict=True):
            since = time.monotonic()
            numbers.append(scene.github.open_pull_request(name, word, "main", word, author=OWNER))
            watch.add(name, numbers[-1], word, since)
        helped = threading.Thread(target=lambda: help_seconds.append(time_help(scene, quiet_name, quiet_number)))
        helped.start()
        during()
        scene.wait("all plans", lambda: not watch.open)
        helped.join()
    watch.end()
    slowest = pages.end()
    ranks = {one.word: rank for rank, one in enumerate(watch.shown)}
    overtaken = max(ranks[word] - place for place, word in enumerate(words))
    settle(scene, hung)
    twice = sum(len(scene.comments(name, number)) > 1 for name, number in zip(names, numbers, strict=True))
    for name, number in zip((*names, quiet_name), (*numbers, quiet_number), strict=True):
        scene.github.close(name, number, author=OWNER)
    settle(scene, hung)
    return Burst([one.shown_after for one in watch.shown], taken, overtaken, help_seconds[0], slowest, twice)


def open_quiet(scene: Scene, word: str) -> int:
    """Open a pull request in the last repository, and wait until it is planned; return its number."""
    scene.edit(scene.names[-1], word)
    number = scene.github.open_pull_request(scene.names[-1], word, "main", word, author=OWNER)
    scene.wait("a quiet pull request", lambda: scene.has_plan(scene.names[-1], number, word))
    return number


def time_help(scene: Scene, name: str, number: int) -> float:
    """Write `/help`, and return the seconds until it is answered."""
    began = time.monotonic()
    scene.github.comment(name, number, "/help", author=OWNER)
    scene.wait("/help", lambda: has_help(scene, name, number))
    return time.monotonic() - began


def has_help(scene: Scene, name: str, number: int) -> bool:
    state = scene.github.state
    with state.lock:
        comments = [one for one in state.repositories[name].comments.values() if one.number == number and one.by_app]
        return any("mergeplan:plan" not in one.body for one in comments)


def settle(scene: Scene, hung: int = 0) -> None:
    """Return when no service has work but jobs that hang; before and after what is measured."""
    quiet = [0]

    def is_quiet() -> bool:
        quiet[0] = quiet[0] + 1 if all(is_idle(service, hung) for service in scene.services) else 0
        return quiet[0] > 3

    scene.github.wait_idle(60)
    scene.wait("quiet", is_quiet, pause=0.5)


def is_idle(service: Service, hung: int) -> bool:
    try:
        return service.read_metric(CLAIMED) <= hung and not service.read_metric(AGE)
    except (OSError, URLError):
        return False


class Pages:
    """Asks the first service for `/healthz` ten times a second, and keeps the longest answer."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ended = threading.Event()
        self._slowest = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while not self._ended.wait(0.1):
            began = time.monotonic()
            self._service.answers()
            self._slowest = max(self._slowest, time.monotonic() - began)

    def end(self) -> float:
        self._ended.set()
        self._thread.join()
        return self._slowest


def burst(size: Size, pulls: int) -> None:
    with open_scene(size) as scene:
        print(f"{size}; {CORES} cores", flush=True)
        run_burst(scene, scene.names[:1], "first")
        run_burst(scene, [scene.names[n % len(scene.names)] for n in range(pulls)], "many").print(
            f"{pulls} at once, in {min(pulls, len(scene.names))} repositories", size.spacing
        )
        run_burst(scene, [scene.names[0]] * pulls, "one").print(f"{pulls} at once, in one repository", size.spacing)


# --- an hour ---


@dataclass
class Samples:
    """Samples of the services, taken every few seconds."""

    memory: list[float] = field(default_factory=list)
    children: list[float] = field(default_factory=list)
    descriptors: list[float] = field(default_factory=list)
    connections: list[float] = field(default_factory=list)
    queue_age: list[float] = field(default_factory=list)

    def take(self, scene: Scene) -> None:
        self.memory.append(sum(service.memory() for service in scene.services))
        self.children.append(sum(service.children_memory() for service in scene.services))
        self.descriptors.append(sum(service.descriptors() for service in scene.services))
        self.connections.append(scene.database.connections() if scene.database else 0)
        self.queue_age.append(scene.services[0].read_metric(AGE))


def print_row(what: str, values: Sequence[float], unit: str) -> None:
    """Print the medians of the first and the last quarter, their ratio, and the largest value."""
    part = max(1, len(values) // 4)
    first, last = statistics.median(values[:part]), statistics.median(values[-part:])
    ratio = f"x {last / first:.2f}" if first else ""
    print(f"  {what:28} {first:9.1f} {last:9.1f} {ratio:>8}   most {max(values):.1f} {unit}")


def plan_hour(names: Sequence[str], an_hour: float, minutes: float) -> list[tuple[float, str, int, str]]:
    """Return what happens when, in order: seconds, `open`, `push` or `close`, the pull request, its repository."""
    choose = random.Random(1)  # noqa: S311 - reproducible, not secret
    acts, at, index = [], 0.0, 0
    while (at := at + choose.expovariate(an_hour / 3600)) < minutes * 60:
        name, pushed = choose.choice(names), at + choose.uniform(30, 90)
        acts += [(at, "open", index, name), (pushed, "push", index, name)]
        acts.append((pushed + choose.uniform(60, 180), "close", index, name))
        index += 1
    return sorted(act for act in acts if act[0] < minutes * 60)


def run_hour(scene: Scene, an_hour: float, minutes: float) -> None:
    watch, samples, numbers = Watch(scene), Samples(), dict[int, int]()
    began = time.monotonic()
    next_sample = 0.0
    with measure(scene) as taken:
        for at, act, index, name in plan_hour(scene.names, an_hour, minutes):
            while (wait := began + at - time.monotonic()) > 0:
                if time.monotonic() > next_sample:
                    samples.take(scene)
                    next_sample = time.monotonic() + SAMPLE_SECONDS
                time.sleep(min(wait, 0.5))
            word = f"pull{index}"
            if act == "close":
                watch.forget(name, numbers[index])
                scene.github.close(name, numbers[index], author=OWNER)
                continue
            if act == "push":
                watch.forget(name, numbers[index])
                word += "again"
            since = time.monotonic()
            scene.edit(name, word, f"pull{index}")
            if act == "open":
                since = time.monotonic()
                numbers[index] = scene.github.open_pull_request(name, word, "main", word, author=OWNER)
            watch.add(name, numbers[index], word, since)
        samples.take(scene)
    watch.end()
    print_hour(watch, samples, taken, len(numbers))


def print_hour(watch: Watch, samples: Samples, taken: Taken, pulls: int) -> None:
    seconds = [one.shown_after for one in sorted(watch.shown, key=lambda one: one.since)]
    part = max(1, len(seconds) // 4)
    quarters = [seconds[:part], seconds[-part:]]
    print(f"  {pulls} pull requests, {len(seconds)} plans shown, {2 * pulls - len(seconds)} not before what followed")
    print(f"  seconds to comment: p50 {quantile(seconds, 0.5):.1f}, p99 {quantile(seconds, 0.99):.1f}, "
          f"most {max(seconds):.1f}")  # fmt: skip
    p99 = [quantile(values, 0.99) for values in quarters]
    print(f"  p99 of the first quarter {p99[0]:.1f} s, of the last {p99[1]:.1f} s: x {p99[1] / p99[0]:.2f}")
    busy = taken.work / taken.seconds
    print(f"  {taken}")
    print(f"  cores in use: {busy:.2f}; {taken.work / len(seconds):.2f} CPU s a plan")
    print(f"  {'':28} {'first 1/4':>9} {'last 1/4':>9} {'ratio':>8}")
    print_row("memory of services", samples.memory, "MB")
    print_row("memory of children", samples.children, "MB")
    print_row("open descriptors", samples.descriptors, "")
    if any(samples.connections):
        print_row("database connections", samples.connections, "")
    print_row("queue age", samples.queue_age, "s")


def hour(size: Size, an_hour: float, minutes: float) -> None:
    with open_scene(size) as scene:
        print(f"{size}; {an_hour:g} pull requests an hour for {minutes:g} minutes; {CORES} cores", flush=True)
        run_burst(scene, scene.names[:1], "first")
        run_hour(scene, an_hour, minutes)


# --- a bad night ---


def night(size: Size, pulls: int) -> None:
    """Two services on PostgreSQL, and what an operator is woken for."""
    with open_scene(size) as scene:
        assert scene.database and len(scene.services) > 1, "a night needs --postgresql and --services 2"
        print(f"{size}; {CORES} cores", flush=True)
        names = [scene.names[n % (len(scene.names) - 1)] for n in range(pulls)]
        run_burst(scene, names, "plain").print("without trouble", size.spacing)
        run_burst(scene, names, "restart", lambda: restart(scene)).print("PostgreSQL ended after 2 s", size.spacing)
        hang(scene, names, size)
        run_burst(scene, names, "killed", lambda: kill(scene)).print("kill -9 of one service after 2 s", size.spacing)


def restart(scene: Scene) -> None:
    time.sleep(2)
    assert scene.database
    scene.database.restart()


def kill(scene: Scene) -> None:
    time.sleep(2)
    service = scene.services.pop()
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()


def hang(scene: Scene, names: Sequence[str], size: Size) -> None:
    """The planners of one repository hang while others are planned."""
    name = scene.names[-2]
    files = [service.home / name / "hangs" for service in scene.services]
    for file in files:
        file.touch()
    scene.edit(name, "hanging")
    number = scene.github.open_pull_request(name, "hanging", "main", "hanging", author=OWNER)
    others = [other for other in names if other != name]
    time.sleep(2)
    run_burst(scene, others, "beside", hung=1).print("beside a planner that hangs", size.spacing)
    for file in files:
        file.unlink()
    scene.wait("the plan that hung", lambda: scene.has_plan(name, number, "hanging"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("burst", "hour", "night"))
    parser.add_argument("--repositories", type=int, default=100)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--pulls", type=int, default=20)
    parser.add_argument("--an-hour", type=float, default=200)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--services", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spacing", type=float, default=1.0)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    size = Size(
        options.repositories, options.models, options.services, options.postgresql, options.spacing, options.workers
    )
    if options.what == "hour":
        hour(size, options.an_hour, options.minutes)
    else:
        {"burst": burst, "night": night}[options.what](size, options.pulls)


if __name__ == "__main__":
    main()
