"""freshness: how old the tables of an environment are, beside the ages that their models allow."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from mergeplan.planner.checks.freshness import FreshnessResult, FreshnessStatus, check_intervals, check_table
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.metadata import Freshness
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.passed.audit_results import RecordedAudit

RECORDED_AS = "freshness"  # in place of an audit's name


@dataclass(frozen=True)
class _Check:
    snapshot: Snapshot
    freshness: Freshness

    @property
    def reads_table(self) -> bool:
        return self.freshness.asks_rows or self.snapshot.kind.is_external


def stream_freshness(
    work: Workspace, environment: Environment, selectors: Collection[str] = ()
) -> Iterator[FreshnessResult]:
    """Yield the freshness of each model of an environment that limits it; `selectors` () choose all.

    Spark is asked for tables of others and for `loaded_at` alone: the state knows what runs have filled.
    """
    for result in _measure(work, environment, selectors):
        fresh, blocks = result.status is FreshnessStatus.FRESH, not result.ok
        table = environment.snapshots[result.model.name].table
        record = RecordedAudit(environment.name, result.model.name, RECORDED_AS, table, int(not fresh), blocks)
        with suppress(RequestError):  # a reader may not write the state, and still sees the ages
            work.store.audit_results.record([record])
        yield result
        work.cancellation.check()


def _measure(work: Workspace, environment: Environment, selectors: Collection[str]) -> Iterator[FreshnessResult]:
    checks = _list_checks(work, environment, selectors)
    tables = [check.snapshot.table for check in checks if not check.reads_table]
    timelines = work.store.intervals.load_timelines(tables) if tables else {}
    for check in checks:
        snapshot, freshness = check.snapshot, check.freshness
        if check.reads_table:
            yield check_table(work.engine, snapshot, freshness, work.now)
        else:
            yield check_intervals(snapshot.model, freshness, timelines.get(snapshot.table, ()), work.now)


def _list_checks(work: Workspace, environment: Environment, selectors: Collection[str]) -> list[_Check]:
    snapshots = environment.snapshots
    names: Collection[str] = snapshots.keys()
    if selectors:
        graph = graph_of({name: snapshot.model for name, snapshot in snapshots.items()})
        names = select_by_request(work.project, selectors, graph)
    return [
        _Check(snapshots[name], freshness)
        for name in sorted(names)
        if name in snapshots and (freshness := snapshots[name].model.metadata.freshness)
    ]
