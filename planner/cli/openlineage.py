"""OpenLineage while a plan is applied: `openlineage` in config.yaml says where to; what is lost is told, no more."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from planner.apply.events import Emit, Event
from planner.apply.executor import Outcome
from planner.apply.openlineage.facets import Scene
from planner.apply.openlineage.listener import Listener
from planner.apply.openlineage.transport import Sender, server_name, to_file, to_server
from planner.cli.json_lines import JsonLines
from planner.cli.terminal import Terminal, counted
from planner.cli.workspace import Workspace
from planner.parsing.files.schema import OpenLineageConfig
from planner.plan.build import Plan


class Told:
    """What happens goes to both: whoever shows it, and OpenLineage."""

    def __init__(self, emit: Emit, listener: Listener | None = None) -> None:
        self._emit, self._listener = emit, listener
        self.outcome: Outcome | None = None
        self.defect = ""

    def event(self, event: Event) -> None:
        """Hand it on."""
        self._emit(event)
        self.tell(lambda listener: listener.event(event))

    def tell(self, say: Callable[[Listener], None]) -> None:
        """Let OpenLineage hear; a defect of ours in it is no reason to fail a plan."""
        if self._listener is None or self.defect:
            return
        try:
            say(self._listener)
        except Exception as error:
            self.defect = f"{type(error).__name__}: {error}"


@contextmanager
def openlineage(work: Workspace, planned: Plan, out: Terminal | JsonLines) -> Iterator[Told]:
    """Tell OpenLineage of a plan that is applied within, if config.yaml says where to."""
    given = work.project.config.openlineage
    if given is None:
        yield Told(out.event)
        return
    sender = _sender(work, given)
    scene = Scene(planned, given.namespace or work.project.config.project or "mergeplan")
    listener = Listener(scene, sender.send, lambda: datetime.now(UTC), lambda: str(uuid.uuid4()))
    told = Told(out.event, listener)
    failure: str | None = "It was broken off."
    try:
        told.tell(Listener.begin)
        yield told
        failures = told.outcome.failures if told.outcome else ()
        failure = str(failures[0].error) if failures else None
    except BaseException as error:
        failure = str(error) or failure
        raise
    finally:
        why = failure
        told.tell(lambda listener: listener.end(why))
        if told.defect:
            out.warn(f"OpenLineage: events are missing, by a defect of mergeplan: {told.defect}.")
        if lost := sender.close():
            where = server_name(given.address) if given.url else str(given.file)
            out.warn(f"OpenLineage: {counted(lost.count, 'event')} did not reach {where}: {lost.reason}.")


def _sender(work: Workspace, given: OpenLineageConfig) -> Sender:
    if given.file is not None:
        return Sender(to_file(work.root / given.file))
    key = work.openlineage_key or (given.api_key.get_secret_value() if given.api_key else "")
    return Sender(to_server(given.address, key, given.timeout_seconds))
