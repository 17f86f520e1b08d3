"""The last commits of a SQLMesh project's history, replayed as pull requests: the tables that each tool would build.

SQLMesh plans the same commit against the same parent, with `benchmarks.sqlmesh_plans`. The tables of a plan are
compared: models of other kinds than VIEW, EMBEDDED and EXTERNAL. `benchmarks.replay` says how it goes.

    python -m benchmarks.replayed_sqlmesh REPOSITORY [--folder F] [--commits 8] [--config JSON] [--write FILE]

MERGEPLAN_PEER_PYTHON names the Python that has SQLMesh (`make bench-peer` installs it). Of the project's
configuration the keys in `KEYS` are used; `--config` adds to them, or stands in place of a `config.py`. A file that
DuckDB would read by its path (`read_csv('a/b.csv')`) is a table `files.b` for both, as the guide for moving says.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import yaml

from benchmarks.hub_packages import write_tree
from benchmarks.replay import Answer, Peer, Replay, read_options, replay_history
from benchmarks.stand_in_spark import StandInSpark
from mergeplan.planner.model.model import Column

KEYS = ("model_defaults", "model_naming", "variables", "time_column_format")
FILES = ("config.yaml", "config.yml", "config.py")
OURS = {"gateways": {"spark": {"connection": {"type": "spark"}}}, "default_gateway": "spark"}
START = "2020-01-01"  # where a project sets none
PROGRAM = Path(__file__).with_name("sqlmesh_plans.py")
FILE_READ = re.compile(r"\bread_(?:csv|parquet|json)(?:_auto)?\s*\(\s*'[^']*?(\w+)\.\w+'[^()]*\)", re.IGNORECASE)
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")


class SqlmeshReplay(Replay):
    """A SQLMesh project; SQLMesh's prod lies in `theirs.db`."""

    PARTS = ("models", "audits", "macros", "seeds", "config.yaml", "config.yml", "config.py", "external_models.yaml")
    TWICE = False

    def lay_out(self, commit: str) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        write_tree(self.options.repository, commit, self.options.folder, self.root)
        for file in self.root.glob("models/**/*.sql"):
            text = file.read_text("utf-8")
            file.write_text(FILE_READ.sub(r"files.\1", text), "utf-8")

    def put_parent(self) -> None:
        (self.place / "theirs.db").unlink(missing_ok=True)
        self.ask_peer()

    def ask_peer(self) -> Answer:
        shared = self._read_config()
        connections = {"connection": {"type": "duckdb", **self.options.duckdb}}
        state = {"state_connection": {"type": "duckdb", "database": str(self.place / "theirs.db")}}
        gateways = {"gateways": {"local": connections | state}, "default_gateway": "local"}
        self._write_config(shared | gateways)
        answer = self.peer.ask(root=str(self.root), promotes="yes")
        self._write_config(shared | OURS)
        builds, by_version, tables = (frozenset(map(str, answer[key])) for key in ("builds", "by_version", "tables"))
        if builds != by_version:
            raise ValueError(f"SQLMesh backfills {sorted(builds)}, by version {sorted(by_version)}")
        return Answer(tables, builds, int(answer["nodes"]), answer["verdicts"])

    def open_engine(self) -> StandInSpark:
        columns = self.options.columns.items()
        return StandInSpark({name: tuple(Column(*pair) for pair in listed.items()) for name, listed in columns})

    def move_on(self) -> None:
        """SQLMesh's prod is already the commit."""

    def _read_config(self) -> dict[str, object]:
        content: dict[str, object] = {}
        for name in FILES:
            file = self.root / name
            if file.suffix != ".py" and file.is_file():
                content = yaml.safe_load(JINJA.sub("none", file.read_text("utf-8")))
            file.unlink(missing_ok=True)
        shared: dict[str, object] = {key: content[key] for key in KEYS if content.get(key)} | self.options.config
        defaults = shared.get("model_defaults")
        return shared | {"model_defaults": {"start": START, **(defaults if isinstance(defaults, dict) else {})}}

    def _write_config(self, content: dict[str, object]) -> None:
        (self.root / "config.yaml").write_text(json.dumps(content, default=str))


def main() -> None:
    """Replay, and print the table."""
    options = read_options(
        (["--config"], {"type": json.loads, "default": {}}),
        (["--duckdb"], {"type": json.loads, "default": {}, "help": "keys of SQLMesh's connection: catalogs"}),
    )
    peer = Peer(os.environ["MERGEPLAN_PEER_PYTHON"], PROGRAM.read_text("utf-8"), MAX_FORK_WORKERS="1")
    replay_history(SqlmeshReplay, options, peer, "SQLMesh")


if __name__ == "__main__":
    main()
