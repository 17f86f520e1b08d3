"""The last commits of a dbt project's history, replayed as pull requests: the tables that each tool would build.

dbt lists `state:modified+` with the parent's manifest. The tables of a plan are compared with dbt's nodes that hold
rows: models of other kinds than view and ephemeral, seeds and snapshots. `benchmarks.replay` says how it goes.

    python -m benchmarks.replayed_history REPOSITORY [--folder F] [--commits 30] [--mirrors FOLDER] [--write FILE]
        [--build] [--rows FOLDER]

With --build, dbt also builds each commit whole, one after the other in one warehouse. The tables whose types or rows
differ from the parent's are the least that had to be built, with these rows. A file `NAME.csv` of --rows is the source
`raw.NAME`, and takes the place of the seed of that name.

MERGEPLAN_DBT_PYTHON names the Python that has dbt. Packages come from copies of their repositories
(`benchmarks.hub_packages`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

import yaml

from benchmarks.dbt_warehouse import DbtWarehouse
from benchmarks.hub_packages import lay_out_packages, write_tree
from benchmarks.replay import Answer, Peer, Replay, read_options, replay_history
from benchmarks.stand_in_spark import StandInSpark, read_tables
from mergeplan.planner.parsing.files.dbt.nodes import table_name
from mergeplan.planner.project.dbt.inputs import PYTHON

SCHEMA = "analytics"
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


class DbtReplay(Replay):
    """A dbt project; the manifests of prod and of a commit lie in `old` and `new`."""

    PARTS = ("models", "macros", "seeds", "data", "snapshots", "dbt_project.yml")

    def __init__(self, options: argparse.Namespace, place: Path, peer: Peer) -> None:
        super().__init__(options, place, peer)
        self.profile, self.target = "", "old"
        self.warehouse = DbtWarehouse(place / "built", options.rows) if options.build else None

    def lay_out(self, commit: str) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        write_tree(self.options.repository, commit, self.options.folder, self.root)
        for file in self.options.rows.glob("*.csv") if self.options.rows else ():
            for seed in self.root.rglob(file.name):
                shutil.copyfile(file, seed)
        lay_out_packages(self.root, self.options.mirrors)
        project = yaml.safe_load((self.root / "dbt_project.yml").read_text("utf-8"))
        self.profile = str(project.get("profile") or project["name"])
        adapter = self.options.adapter
        target = {"target": "prod", "outputs": {"prod": OUTPUTS[adapter]}}
        (self.root / "profiles.yml").write_text(json.dumps({self.profile: target}))
        dbt = {"adapter": adapter, "target_schema": SCHEMA}
        gateways = {"spark": {"connection": {"type": "spark"}}}
        (self.root / "config.yaml").write_text(json.dumps({"gateways": gateways, "dbt": dbt}))

    def put_parent(self) -> None:
        for name in ("old", "new"):
            shutil.rmtree(self.place / name, ignore_errors=True)
        self._ask("parse", "old")
        self._build_tables(frozenset(self._list_tables("old").values()))

    def ask_peer(self) -> Answer:
        listed = self._ask("ls", "new")
        ids = self._list_tables("new")
        tables, builds = frozenset(ids.values()), frozenset(ids[id] for id in listed if id in ids)
        return Answer(tables, builds, len(listed), self._build_tables(tables))

    def open_engine(self) -> StandInSpark:
        return StandInSpark(read_tables(self.place / self.target / "manifest.json", self.root, self.options.columns))

    def move_on(self) -> None:
        shutil.rmtree(self.place / "old")
        (self.place / "new").rename(self.place / "old")

    def close(self) -> None:
        super().close()
        if self.warehouse:
            self.warehouse.close()

    def _list_tables(self, target: str) -> dict[str, str]:
        content = json.loads((self.place / target / "manifest.json").read_text("utf-8"))["nodes"]
        return {id: table_name(node["relation_name"]) for id, node in content.items() if _holds_rows(node)}

    def _build_tables(self, tables: frozenset[str]) -> frozenset[str] | None:
        if self.warehouse is None:
            return None
        self.warehouse.build_project(self.root, self.profile)
        return self.warehouse.find_changed(tables)

    def _ask(self, verb: str, target: str) -> list[str]:
        self.target = target
        nodes: list[str] = self.peer.ask(
            verb=verb, root=str(self.root), profile=self.profile, target=str(self.place / target),
            state=str(self.place / "old"),
        )["nodes"]  # fmt: skip
        return nodes


def _holds_rows(node: dict[str, object]) -> bool:
    config = node["config"]
    assert isinstance(config, dict)
    is_view = node["resource_type"] == "model" and config["materialized"] in ("view", "ephemeral")
    return node["resource_type"] in ("model", "seed", "snapshot") and not is_view


def main() -> None:
    """Replay, and print the table."""
    options = read_options(
        (["--adapter"], {"choices": ("spark", "databricks"), "default": "spark"}),
        (["--mirrors"], {"type": Path, "default": Path()}),
        (["--build"], {"action": "store_true"}),
        (["--rows"], {"type": Path}),
    )
    peer = Peer(os.environ[PYTHON], PROGRAM, DBT_SEND_ANONYMOUS_USAGE_STATS="false")
    replay_history(DbtReplay, options, peer, "dbt")


if __name__ == "__main__":
    main()
