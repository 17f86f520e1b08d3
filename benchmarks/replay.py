"""Commits of a project's history, planned one after the other as pull requests, beside another tool.

For each commit its parent is put into prod in the state alone, as in `benchmarks.promoted`, and the commit is planned.
No Spark starts: a stand-in answers. A subclass of `Replay` lays out a commit and asks the other tool.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.hub_packages import git
from benchmarks.promoted import promote_plan
from benchmarks.stand_in_spark import StandInSpark
from mergeplan.planner.errors import MergeplanError, ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import settings_of
from mergeplan.planner.session.use_cases.planning import check_request, make_plan
from mergeplan.planner.session.workspace import Workspace

ERRORS = (ValueError, MergeplanError, ProjectErrors, OSError)
WITHOUT_ROWS = (Kind.VIEW, Kind.EMBEDDED, Kind.EXTERNAL)
ANSWER = "SAYS "


@dataclass(frozen=True)
class Verdict:
    """The category of one model in a plan, and whether its table is built."""

    category: str
    rule: str
    reason: str
    builds: bool


@dataclass
class Step:
    """One commit: what each tool builds."""

    commit: str
    parent: str
    subject: str
    error: str = ""
    tables: int = 0  # that the project has
    refused: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    changed: tuple[str, ...] | None = None  # whose types or rows differ from its parent's, where both were built
    nodes: int = 0  # that the other tool lists, with views
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    their_verdicts: dict[str, str] = field(default_factory=dict)
    seconds: tuple[float, float] = (0.0, 0.0)  # of its first plan, and of its second


@dataclass(frozen=True)
class Answer:
    """The other tool's tables: all of the project, those that it builds, and those that hold other rows than before."""

    tables: frozenset[str]
    builds: frozenset[str]
    nodes: int
    changed: frozenset[str] | None = None
    verdicts: dict[str, str] = field(default_factory=dict)


class Peer:
    """Another tool in a process of its own, which stays for all commits: a line of JSON in, one out."""

    def __init__(self, python: str, program: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip

    def ask(self, **request: str) -> dict[str, Any]:
        """Return its answer; raise ValueError with its error."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                if answer["error"]:
                    raise ValueError(f"the other tool: {answer['error']}")
                return answer
        raise ValueError("the other tool ended")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Replay(ABC):
    """A repository, and the folder in which its commits are laid out one after the other."""

    PARTS: tuple[str, ...] = ()  # files and folders of a project that make a commit one of its own
    TWICE = True  # each commit is planned again, for the time that it takes

    def __init__(self, options: argparse.Namespace, place: Path, peer: Peer) -> None:
        self.options, self.place, self.peer = options, place, peer
        self.root = place / "project"
        self.refused: tuple[str, ...] = ()
        os.environ["MERGEPLAN_CACHE"] = str(place / "cache")

    @abstractmethod
    def lay_out(self, commit: str) -> None:
        """Write the files of a commit into the project's folder."""

    @abstractmethod
    def put_parent(self) -> None:
        """Make the files prod's for the other tool; without any history."""

    @abstractmethod
    def ask_peer(self) -> Answer:
        """Ask the other tool for the tables that it builds."""

    @abstractmethod
    def open_engine(self) -> StandInSpark:
        """Return the stand-in for prod's Spark."""

    @abstractmethod
    def move_on(self) -> None:
        """Make the files prod's for the other tool, after a step."""

    def close(self) -> None:
        self.peer.close()

    def list_steps(self) -> list[Step]:
        """Return the newest commits of the main line that touch the project, the oldest first."""
        parts = [str(Path(self.options.folder, part)) for part in self.PARTS]
        count = f"-n{self.options.commits + 1}"
        revision = self.options.until
        form = "--format=%h%x09%s"
        log = git(self.options.repository, "log", "--first-parent", "-m", count, form, revision, "--", *parts)
        rows = [line.split("\t", 1) for line in log.decode("utf-8", "replace").splitlines() if "\t" in line][::-1]
        return [Step(commit, parent, subject) for (parent, _), (commit, subject) in pairwise(rows)]

    def begin(self, commit: str) -> str:
        """Put a commit into prod; return the error that prevents it, or ''."""
        (self.place / "state.db").unlink(missing_ok=True)
        try:
            self.lay_out(commit)
            self.put_parent()
            self.plan()
        except ERRORS as error:
            return _one_line(error)
        return ""

    def run(self, step: Step) -> None:
        """Fill in a step, and put its commit into prod; its error says why it cannot be compared."""
        try:
            self.lay_out(step.commit)
            answer = self.ask_peer()
            seconds, plan = self.plan(promotes=not self.TWICE)
            again = self.plan()[0] if self.TWICE else seconds
            self.move_on()
        except ERRORS as error:
            step.error = _one_line(error)
            return
        step.seconds = (seconds, again)
        self._compare(step, plan, answer)

    def plan(self, *, promotes: bool = True) -> tuple[float, Plan]:
        """Return a plan of the files, and the seconds that it took."""
        engine = self.open_engine()
        settings = replace(
            settings_of(os.environ, self.root),
            state_url=f"sqlite:///{self.place / 'state.db'}",
            home=self.place / "home",
            open_engine=lambda *_: engine,  # type: ignore[arg-type]
        )
        work = Workspace(settings)
        began = time.monotonic()
        try:
            plan = make_plan(work, check_request(work, PlanOptions()), work.models)
            taken = time.monotonic() - began
            self.refused = tuple(sorted(work.project.refused.names))
            if promotes:
                promote_plan(work, plan)
        finally:
            work.close()
        return taken, plan

    def _compare(self, step: Step, plan: Plan, answer: Answer) -> None:
        step.tables, step.nodes, step.refused = len(answer.tables), answer.nodes, self.refused
        step.theirs = tuple(sorted((answer.builds & answer.tables) - set(self.refused)))
        builds = {c.name: c for c in plan.changes if c.new is not None and (c.recomputed or c.change == "added")}
        step.ours = tuple(sorted(name for name, change in builds.items() if change.kind not in WITHOUT_ROWS))
        step.changed = None if answer.changed is None else tuple(sorted(answer.changed - set(self.refused)))
        step.their_verdicts = answer.verdicts
        step.verdicts = {
            change.name: Verdict(
                str(change.category or change.change), change.rule, change.reason, change.name in step.ours
            )
            for change in plan.changes
        }


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]


def read_options(*arguments: tuple[Sequence[str], dict[str, object]]) -> argparse.Namespace:
    """Return the options of a replay, with those that a tool adds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("--folder", default="")
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--until", default="HEAD")
    parser.add_argument("--columns", type=json.loads, default={}, help="table -> columns, of sources that no YAML has")
    parser.add_argument("--write", type=Path)
    for names, settings in arguments:
        parser.add_argument(*names, **settings)  # type: ignore[arg-type]
    return parser.parse_args()


def replay_history(
    make: Callable[[argparse.Namespace, Path, Peer], Replay], options: argparse.Namespace, peer: Peer, tool: str
) -> None:
    """Replay, and print the table."""
    with tempfile.TemporaryDirectory() as name:
        replay = make(options, Path(name).resolve(), peer)
        steps, standing, problem = replay.list_steps(), "", ""
        try:
            for step in steps:
                if standing != step.parent:
                    problem = replay.begin(step.parent)
                if problem:
                    step.error = f"its parent: {problem}"
                else:
                    replay.run(step)
                standing = "" if step.error else step.commit
                print(step.commit, step.error or f"{len(step.ours)} {len(step.theirs)} {step.seconds}", flush=True)
                if options.write:
                    options.write.write_text(json.dumps([asdict(done) for done in steps], indent=1))
        finally:
            replay.close()
    print_table(steps, tool)


def print_table(steps: list[Step], tool: str) -> None:
    """Print a row for each commit, and the sums of those that both tools planned."""
    print(f"{'commit':<10}{'tables':>7}{'ours':>6}{tool:>9}{'changed':>9}{'nodes':>7}{'refused':>9}  subject")
    for step in steps:
        changed = "" if step.changed is None else len(step.changed)
        numbers = f"{step.tables:>7}{len(step.ours):>6}{len(step.theirs):>9}{changed:>9}"
        numbers += f"{step.nodes:>7}{len(step.refused):>9}"
        print(f"{step.commit:<10}" + (f"  {step.error[:150]}" if step.error else f"{numbers}  {step.subject[:60]}"))
        if lost := set(step.changed or ()) - set(step.ours):
            print(f"{'':<10}  UNSOUND: kept, and its rows differ: {', '.join(sorted(lost))}")
    good = [step for step in steps if not step.error]
    ours, theirs = sum(len(step.ours) for step in good), sum(len(step.theirs) for step in good)
    print(f"{len(good)} of {len(steps)} commits: {ours} tables are built by mergeplan, {theirs} by {tool}")
    if built := [step for step in good if step.changed is not None]:
        print(f"The types or rows of {sum(len(step.changed or ()) for step in built)} tables differ from the parent's")
