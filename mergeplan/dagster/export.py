"""Write what Dagster needs of an environment, from the state alone: `python -m mergeplan.dagster.export --to FILE`.

No file of a model is opened, no project code runs and no Spark starts. This runs where mergeplan is installed; Dagster
need not be.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from mergeplan.dagster.deployment import Deployment, ModelLineage
from mergeplan.planner.cache.store import Cache, Lookups
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.contract.from_plan import format_spans
from mergeplan.planner.contract.tables import LineageEnd
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.project.lineage import ALL, ROWS, Followed, FollowedModels, Node
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.session.scheduling.schedule import make_schedule
from mergeplan.planner.session.settings import SessionSettings, settings_of
from mergeplan.planner.session.state_access import open_state
from mergeplan.planner.snapshot.environment import PROD, Environment, parse_environment_name


def export_deployment(settings: SessionSettings, environment: str, *, lineage: bool = False) -> Deployment:
    """Export the environment with the time that its tables hold and, if requested, the lineage of its columns.

    Raise RequestError if the environment or the state does not exist.
    """
    with open_state(settings) as store:
        schedule = make_schedule(store, environment)
        shown = store.environments.get(environment)
        stored = {name: snapshot for name, snapshot in shown.snapshots.items() if snapshot.kind.is_stored}
        timelines = store.intervals.load_timelines({snapshot.table for snapshot in stored.values()})
    loaded_spans = {name: format_spans(timelines[snapshot.table]) for name, snapshot in stored.items()}
    lookups = Lookups(Cache(settings.cache))
    rows = lineage_rows(shown, ShapeMemory(lookups, reader_version())) if lineage else {}
    lookups.keep()
    return Deployment(schedule=schedule, held=loaded_spans, lineage=rows)


def lineage_rows(environment: Environment, memory: ShapeMemory) -> dict[str, ModelLineage]:
    """Return the lineage of the models that an environment shows; embedded models are replaced by what they read."""
    models = {name: snapshot.model for name, snapshot in environment.snapshots.items()}
    followed = FollowedModels(graph_of(models), memory)
    return {name: _row(name, followed[name]) for name in followed if models[name].kind.has_query}


def _row(name: str, followed: Followed) -> ModelLineage:
    sources: dict[Node, dict[Node, None]] = {}
    for edge in followed.edges:
        sources.setdefault(edge.target, {})[edge.source] = None
    every = sources.get(Node(name, ALL), {})
    return ModelLineage(
        columns={column: _ends({**sources.get(Node(name, column), {}), **every}) for column in followed.columns or ()},
        row_deciders=_ends({**sources.get(Node(name, ROWS), {}), **every}),
        unfollowed=followed.why_not,
    )


def _ends(nodes: Iterable[Node]) -> tuple[LineageEnd, ...]:
    return tuple(LineageEnd(model=node.model, column=node.column or None) for node in nodes)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code, which has the meaning that `mergeplan` gives it."""
    parser = argparse.ArgumentParser("python -m mergeplan.dagster.export", description="Write what Dagster needs.")
    parser.add_argument("environment", nargs="?", default=PROD)
    parser.add_argument("--project", type=Path, default=Path(), metavar="DIR", help="the project's folder")
    parser.add_argument("--gateway", metavar="NAME")
    parser.add_argument("--lineage", action="store_true", help="with the lineage of columns")
    parser.add_argument("--to", type=Path, metavar="FILE", help="write it to this file, not to standard output")
    options = parser.parse_args(arguments)
    try:
        settings = settings_of(os.environ, options.project, options.gateway)
        name = parse_environment_name(options.environment)
        text = export_deployment(settings, name, lineage=options.lineage).model_dump_json() + "\n"
    except MergeplanError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if options.to is None:
        sys.stdout.write(text)
    else:
        replace_file(options.to, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
