"""The program that SQLMesh's own Python runs for `benchmarks.replayed_sqlmesh`: plans of prod, without a database.

A line of JSON asks, a line answers. Each question is a child of its own, so that no module of another commit is left.
A plan is made by SQLMesh's `PlanBuilder`, with a state in a file of DuckDB. Every change is categorized automatically,
in the mode `full`. To put a plan into prod, its snapshots and intervals are recorded, and no table is made.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout

from sqlglot import exp
from sqlmesh.core.config import CategorizerConfig
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context
from sqlmesh.core.plan import Plan
from sqlmesh.core.snapshot import Snapshot

TIME = "2026-01-02 00:00:00"
WITHOUT_ROWS = ("VIEW", "EMBEDDED", "EXTERNAL")


def plan_prod(root: str, promotes: bool) -> dict[str, object]:
    """Return what SQLMesh's plan of prod backfills, and its categories."""
    context = Context(paths=[root])
    try:
        builder = context.plan_builder(
            "prod", execution_time=TIME, skip_tests=True, skip_linter=True,
            categorizer_config=CategorizerConfig.all_full(), no_auto_categorization=False,
            allow_destructive_models=["*"],
        )  # fmt: skip
        plan = builder.build()
        answer = describe(context, plan)
        if promotes:
            record(context, plan)
        return answer
    finally:
        context.close()


def describe(context: Context, plan: Plan) -> dict[str, object]:
    """Return names of tables: all, those to backfill, and by version; and the category of each changed model."""
    snapshots = [snapshot for snapshot in plan.snapshots.values() if snapshot.is_model]
    tables = {s.snapshot_id: table_name(context, s) for s in snapshots if s.model.kind.name.name not in WITHOUT_ROWS}
    missing = {intervals.snapshot_id for intervals in plan.missing_intervals}
    modified = plan.context_diff.modified_snapshots
    fresh = {s.snapshot_id for s in snapshots if s.name not in modified and s.snapshot_id in plan.context_diff.added}
    versions = {new.snapshot_id for new, old in modified.values() if new.version != old.version}
    verdicts = {}
    for new, _ in modified.values():
        way = "directly" if new.snapshot_id in plan.directly_modified else "indirectly"
        category = new.change_category.name if new.change_category else "NONE"
        verdicts[table_name(context, new)] = f"{way} {category}"
    return {
        "tables": sorted(tables.values()),
        "builds": sorted(tables[id] for id in missing if id in tables),
        "by_version": sorted(tables[id] for id in fresh | versions if id in tables),
        "nodes": len(missing),
        "verdicts": verdicts,
    }


def table_name(context: Context, snapshot: Snapshot) -> str:
    parts = [part.name for part in exp.to_table(snapshot.name).parts]
    if len(parts) == 3 and parts[0] == context.default_catalog:
        parts = parts[1:]
    return ".".join(parts).lower()


def record(context: Context, plan: Plan) -> None:
    """Put a plan into prod, as if its tables had been filled."""
    state = context.state_sync
    state.push_snapshots(plan.new_snapshots)
    for intervals in plan.missing_intervals:
        snapshot = plan.snapshots[intervals.snapshot_id]
        state.add_interval(snapshot, intervals.intervals[0][0], intervals.intervals[-1][1])
    state.promote(plan.environment)
    state.finalize(plan.environment)


def answer_line(line: str) -> dict[str, object]:
    request = json.loads(line)
    with redirect_stdout(sys.stderr):
        try:
            return {"error": "", **plan_prod(request["root"], bool(request["promotes"]))}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}


def main() -> None:
    """Answer each line."""
    set_console(NoopConsole())
    for line in sys.stdin:
        if child := os.fork():
            if os.waitpid(child, 0)[1]:
                print("SAYS " + json.dumps({"error": "SQLMesh ended"}), flush=True)
            continue
        print("SAYS " + json.dumps(answer_line(line)), flush=True)
        os._exit(0)


if __name__ == "__main__":
    main()
