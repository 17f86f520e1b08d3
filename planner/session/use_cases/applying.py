"""Carrying a plan out: what plans and runs have in common."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from mergeplan.planner.apply.events import Emit, Event
from mergeplan.planner.apply.executor import ApplyOptions
from mergeplan.planner.apply.executor import apply as apply_plan
from mergeplan.planner.apply.openlineage.facets import Scene
from mergeplan.planner.apply.openlineage.listener import Listener
from mergeplan.planner.apply.openlineage.transport import Sender, file_transport, http_transport, server_name
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.checks.remembered_tests import spark_settings
from mergeplan.planner.parsing.files.environments import replaces_views
from mergeplan.planner.parsing.files.schema import OpenLineageConfig
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.events import Warned
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.state.leases import Lease


@dataclass(frozen=True)
class Record:
    who: str = ""
    note: str = ""


def execute_plan(
    work: Workspace,
    plan: Plan,
    lease: Lease,
    record: Record,
    *,
    complete: bool = True,
    replan: Callable[[], Plan] | None = None,
) -> Outcome:
    """Execute the plan and report it to OpenLineage; see `mergeplan.planner.apply.executor.apply`."""
    with report_openlineage(work, plan) as reported:
        reported.outcome = apply_plan(
            plan, work.project, work.engine, work.store, lease,
            ApplyOptions(
                work.now, reported.event, record.who, record.note,
                complete=complete, replaces=_can_replace(work, plan), check=work.cancellation.check, replan=replan,
                spark=spark_settings(work.connection) or "",
            ),
        )  # fmt: skip
    return reported.outcome


def _can_replace(work: Workspace, plan: Plan) -> bool:
    """Return True if views of others are replaced; an adoption has shown them beforehand."""
    adopts = any(change.adopts for change in plan.changes)
    return adopts or replaces_views(work.project.config, plan.environment)


class Reported:
    def __init__(self, emit: Emit, listener: Listener | None = None) -> None:
        self._emit, self._listener = emit, listener
        self.outcome: Outcome | None = None
        self.defect = ""

    def event(self, event: Event) -> None:
        try:
            self._emit(event)  # it may end the run here
        finally:
            self.tell(lambda listener: listener.event(event))

    def tell(self, say: Callable[[Listener], None]) -> None:
        """Report to OpenLineage; a defect of the report does not fail the plan."""
        if self._listener is None or self.defect:
            return
        try:
            say(self._listener)
        except Exception as error:
            self.defect = f"{type(error).__name__}: {error}"


@contextmanager
def report_openlineage(work: Workspace, plan: Plan) -> Iterator[Reported]:
    """Tell OpenLineage of a plan that is applied within, if config.yaml says where to."""
    lineage_config = work.project.config.openlineage
    if lineage_config is None:
        yield Reported(work.on_event)
        return
    sender = _create_sender(work, lineage_config)
    scene = Scene(plan, lineage_config.namespace or work.project.config.project or "mergeplan")
    listener = Listener(scene, sender.send, lambda: datetime.now(UTC), lambda: str(uuid.uuid4()))
    reported = Reported(work.on_event, listener)
    failure: str | None = "It was broken off."
    try:
        reported.tell(Listener.begin)
        yield reported
        failures = reported.outcome.failures if reported.outcome else ()
        failure = str(failures[0].error) if failures else None
    except BaseException as error:
        failure = str(error) or failure
        raise
    finally:
        final_failure = failure
        reported.tell(lambda listener: listener.end(final_failure))
        if reported.defect:
            why_not = f"events are missing, after an internal error in mergeplan: {reported.defect}"
            work.on_event(Warned(f"OpenLineage: {why_not}."))
        if lost := sender.close():
            where = server_name(lineage_config.address) if lineage_config.url else str(lineage_config.file)
            events = f"{lost.count} {'event' if lost.count == 1 else 'events'}"
            work.on_event(Warned(f"OpenLineage: {events} did not reach {where}: {lost.reason}."))


def _create_sender(work: Workspace, config: OpenLineageConfig) -> Sender:
    if config.file is not None:
        return Sender(file_transport(work.settings.root / config.file))
    key = work.settings.openlineage_key or (config.api_key.get_secret_value() if config.api_key else "")
    return Sender(http_transport(config.address, key, config.timeout_seconds))
