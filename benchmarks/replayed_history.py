"""The last commits of a dbt project's history, replayed as pull requests: the tables that each tool would build.

For each commit its parent is put into prod in the state alone, as in `benchmarks.promoted`, and the commit is planned;
dbt lists `state:modified+` with the parent's manifest. No Spark starts: a stand-in answers templates. The tables of a
plan are compared with dbt's nodes that hold rows: models of other kinds than view and ephemeral, seeds and snapshots.

    python -m benchmarks.replayed_history REPOSITORY [--folder F] [--commits 30] [--mirrors FOLDER] [--write FILE]

MERGEPLAN_DBT_PYTHON names the Python that has dbt. Packages come from copies of their repositories
(`benchmarks.hub_packages`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import yaml

from benchmarks.hub_packages import git, lay_out_packages, write_tree
from benchmarks.promoted import promote_plan
from benchmarks.stand_in_spark import StandInSpark, read_tables
from mergeplan.planner.errors import MergeplanError, ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.parsing.files.dbt.nodes import table_name
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import settings_of
from mergeplan.planner.session.use_cases.planning import check_request, make_plan
from mergeplan.planner.session.workspace import Workspace

ERRORS = (ValueError, MergeplanError, ProjectErrors, OSError)
SCHEMA = "analytics"
PARTS = ("models", "macros", "seeds", "data", "snapshots", "dbt_project.yml")
WITHOUT_ROWS = (Kind.VIEW, Kind.EMBEDDED, Kind.EXTERNAL)
OUTPUTS = {
    "spark": {"type": "spark", "method": "session", "host": "none", "schema": SCHEMA, "threads": 1},
    "databricks": {"type": "databricks", "host": "none", "http_path": "none", "token": "none", "schema": SCHEMA},
}
PROGRAM = """
import io, json, sys
from contextlib import redirect_stdout
from dbt.cli.main import dbtRunner
types = [part for kind in ("model", "seed", "snapshot") for part in ("--resource-type", kind)]
for line in sys.stdin:
    asked = json.loads(line)
    arguments = ["--quiet", "--no-partial-parse", asked["verb"], "--project-dir", asked["root"], "--profiles-dir",
                 asked["root"], "--profile", asked["profile"], "--target-path", asked["target"], "--log-path",
                 asked["target"]]
    if asked["verb"] == "ls":
        arguments += ["--select", "state:modified+", "--state", asked["state"], *types, "--output", "json",
                      "--output-keys", "unique_id"]
    with redirect_stdout(io.StringIO()):
        done = dbtRunner().invoke(arguments)
    error = "" if done.success else str(done.exception)[:500]
    lines = done.result if asked["verb"] == "ls" and done.success else []
    print("SAYS " + json.dumps({"error": error, "nodes": [json.loads(line)["unique_id"] for line in lines or []]}),
          flush=True)
"""


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
    dbt: tuple[str, ...] = ()
    dbt_nodes: int = 0  # with views and ephemeral models
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    seconds: tuple[float, float] = (0.0, 0.0)  # of its first plan, in which dbt compiles, and of its second


class DbtLists:
    """dbt in a process of its own, which stays for all commits."""

    def __init__(self, python: str) -> None:
        environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        self._process = subprocess.Popen(
            [python, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, **request: str) -> list[str]:
        """Return the ids that dbt lists; raise ValueError with dbt's message."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("SAYS "):
                answer = json.loads(line[5:])
                if answer["error"]:
                    raise ValueError(f"dbt: {answer['error']}")
                return list(answer["nodes"])
        raise ValueError("dbt ended")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Replay:
    """A repository, and the folder in which its commits are laid out one after the other."""

    def __init__(self, options: argparse.Namespace, place: Path, dbt: DbtLists) -> None:
        self.options, self.place, self.dbt = options, place, dbt
        self.root = place / "project"
        self.refused: tuple[str, ...] = ()
        os.environ["MERGEPLAN_CACHE"] = str(place / "cache")

    def list_steps(self) -> list[Step]:
        """Return the newest commits of the main line that touch the project, the oldest first."""
        parts = [str(Path(self.options.folder, part)) for part in PARTS]
        count = f"-n{self.options.commits + 1}"
        revision = self.options.until
        form = "--format=%h%x09%s"
        log = git(self.options.repository, "log", "--first-parent", "-m", count, form, revision, "--", *parts)
        rows = [line.split("\t", 1) for line in log.decode("utf-8", "replace").splitlines() if "\t" in line][::-1]
        return [Step(commit, parent, subject) for (parent, _), (commit, subject) in pairwise(rows)]

    def lay_out(self, commit: str) -> str:
        """Write the files of a commit; return the name of the profile."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        write_tree(self.options.repository, commit, self.options.folder, self.root)
        lay_out_packages(self.root, self.options.mirrors)
        project = yaml.safe_load((self.root / "dbt_project.yml").read_text("utf-8"))
        profile = str(project.get("profile") or project["name"])
        adapter = self.options.adapter
        target = {"target": "prod", "outputs": {"prod": OUTPUTS[adapter]}}
        (self.root / "profiles.yml").write_text(json.dumps({profile: target}))
        dbt = {"adapter": adapter, "target_schema": SCHEMA}
        gateways = {"spark": {"connection": {"type": "spark"}}}
        (self.root / "config.yaml").write_text(json.dumps({"gateways": gateways, "dbt": dbt}))
        return profile

    def begin(self, commit: str) -> str:
        """Put a commit into prod; return the error that prevents it, or ''."""
        for name in ("old", "new"):
            shutil.rmtree(self.place / name, ignore_errors=True)
        (self.place / "state.db").unlink(missing_ok=True)
        try:
            self._ask("parse", self.lay_out(commit), "old")
            self._plan("old")
        except ERRORS as error:
            return _one_line(error)
        return ""

    def run(self, step: Step) -> None:
        """Fill in a step, and put its commit into prod; its error says why it cannot be compared."""
        try:
            listed = self._ask("ls", self.lay_out(step.commit), "new")
            seconds, plan = self._plan("new", promotes=False)
            again, _ = self._plan("new")
        except ERRORS as error:
            step.error = _one_line(error)
            return
        step.seconds = (seconds, again)
        self._compare(step, plan, listed)
        shutil.rmtree(self.place / "old")
        (self.place / "new").rename(self.place / "old")

    def _ask(self, verb: str, profile: str, target: str) -> list[str]:
        return self.dbt.ask(
            verb=verb, root=str(self.root), profile=profile, target=str(self.place / target),
            state=str(self.place / "old"),
        )  # fmt: skip

    def _plan(self, target: str, *, promotes: bool = True) -> tuple[float, Plan]:
        tables = read_tables(self.place / target / "manifest.json", self.root, self.options.columns)
        engine = StandInSpark(tables)
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

    def _compare(self, step: Step, plan: Plan, listed: list[str]) -> None:
        content = json.loads((self.place / "new/manifest.json").read_text("utf-8"))["nodes"]
        tables = {id: table_name(node["relation_name"]) for id, node in content.items() if _holds_rows(node)}
        step.tables, step.dbt_nodes, step.refused = len(tables), len(listed), self.refused
        step.dbt = tuple(sorted(tables[id] for id in listed if id in tables and tables[id] not in self.refused))
        builds = {c.name: c for c in plan.changes if c.new is not None and (c.recomputed or c.change == "added")}
        step.ours = tuple(sorted(name for name, change in builds.items() if change.kind not in WITHOUT_ROWS))
        step.verdicts = {
            change.name: Verdict(
                str(change.category or change.change), change.rule, change.reason, change.name in step.ours
            )
            for change in plan.changes
        }


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]


def _holds_rows(node: dict[str, object]) -> bool:
    config = node["config"]
    assert isinstance(config, dict)
    is_view = node["resource_type"] == "model" and config["materialized"] in ("view", "ephemeral")
    return node["resource_type"] in ("model", "seed", "snapshot") and not is_view


def print_table(steps: list[Step]) -> None:
    """Print a row for each commit, and the sums of those that both tools planned."""
    print(f"{'commit':<10}{'tables':>7}{'ours':>6}{'dbt':>6}{'nodes':>7}{'refused':>9}  subject")
    for step in steps:
        numbers = f"{step.tables:>7}{len(step.ours):>6}{len(step.dbt):>6}{step.dbt_nodes:>7}{len(step.refused):>9}"
        print(f"{step.commit:<10}" + (f"  {step.error[:150]}" if step.error else f"{numbers}  {step.subject[:60]}"))
    good = [step for step in steps if not step.error]
    ours, dbt = (sum(len(part) for part in parts) for parts in ([s.ours for s in good], [s.dbt for s in good]))
    print(f"{len(good)} of {len(steps)} commits: {ours} tables are built by mergeplan, {dbt} by dbt")


def main() -> None:
    """Replay, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("--folder", default="")
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--until", default="HEAD")
    parser.add_argument("--adapter", choices=("spark", "databricks"), default="spark")
    parser.add_argument("--mirrors", type=Path, default=Path())
    parser.add_argument("--columns", type=json.loads, default={}, help="table -> columns, of sources that no YAML has")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        dbt = DbtLists(os.environ[PYTHON])
        replay = Replay(options, Path(name).resolve(), dbt)
        steps, standing, why = replay.list_steps(), "", ""
        try:
            for step in steps:
                if standing != step.parent:
                    why = replay.begin(step.parent)
                if why:
                    step.error = f"its parent: {why}"
                else:
                    replay.run(step)
                standing = "" if step.error else step.commit
                print(step.commit, step.error or f"{len(step.ours)} {len(step.dbt)} {step.seconds}", flush=True)
                if options.write:
                    options.write.write_text(json.dumps([asdict(done) for done in steps], indent=1))
        finally:
            dbt.close()
    print_table(steps)


if __name__ == "__main__":
    main()
