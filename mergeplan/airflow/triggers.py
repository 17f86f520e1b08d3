"""The triggerer's side of a model's task: it waits for its models in mergeplan's state, and holds no worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent
from asgiref.sync import sync_to_async

from mergeplan.airflow.connections import find_state_url, open_reader, run_key
from mergeplan.airflow.decisions import Decision, RunView, Step, decide_task, present
from mergeplan.airflow.place import Place, StateError
from mergeplan.airflow.shared import Shared

if TYPE_CHECKING:
    from mergeplan.airflow.state import StateReader

PRODUCER_SECONDS = 10.0  # between two questions to Airflow about the task that computes
CONNECTION_SECONDS = 60.0  # between two questions to Airflow about a connection
ENDED = ("success", "failed", "upstream_failed", "skipped", "removed")


class RunWatch:
    """A run as the triggerer sees it: its record in mergeplan's state, and its task in Airflow."""

    def __init__(self, reader: StateReader, dag_id: str, run_id: str, producer: str, seconds: float) -> None:
        self.reader, self.producer = reader, producer
        self.id = run_key(dag_id, run_id, producer)
        self.view: Shared[RunView | None] = Shared(lambda: asyncio.to_thread(reader.read_run, self.id), seconds)

        async def ask_producer() -> str:
            ask = sync_to_async(RuntimeTaskInstance.get_task_states)
            try:
                states = await ask(dag_id=dag_id, task_ids=[producer], run_ids=[run_id])
            except Exception:  # of Airflow's API, for a moment: the record decides then
                return ""
            return str(states.get(run_id, {}).get(producer) or "")

        self.producer_state: Shared[str] = Shared(ask_producer, PRODUCER_SECONDS)

    async def decide(self, models: Sequence[str], lost_seconds: float) -> Decision:
        """Return the step of a task; if its record is not enough, the state of the task that computes decides."""
        decision = decide_task(await self.view.get(), models, lost_seconds)
        if decision.step is not Step.NOTHING_DUE:
            return decision
        state = await self.producer_state.get()
        if state and state not in ENDED and not await self._is_known():
            return Decision(Step.WAIT, f"`{self.producer}` is {state}: what is due is not known yet.")
        return decision

    async def _is_known(self) -> bool:
        """Return True if a run is active that has reported what is due."""
        view = await self.view.get()
        return view is not None and view.status == "running" and bool(view.models)

    async def explain_absence(self) -> str:
        """Return the reason why no run will begin; "" while one may."""
        state = await self.producer_state.get()
        if state not in ENDED or await self.view.get() is not None:
            return ""
        if state == "success":
            return (
                f"`{self.producer}` has ended, and the state that is read here has no run `{self.id}`: workers and"
                " triggerer must use one state, see `state_conn_id`."
            )
        return f"`{self.producer}` is {state} and said nothing of what is due: its log says why."


_WATCHES: WeakValueDictionary[tuple[Any, str], RunWatch] = WeakValueDictionary()
_URLS: dict[str, Shared[str]] = {}  # by connection: a thousand tasks that begin together ask for it once


class ModelTrigger(BaseTrigger):
    """Fires when the run of its task instance has a result for the models; where nothing was due it ends the task."""

    def __init__(
        self,
        place: Mapping[str, Any],
        models: Sequence[str],
        producer: str,
        poll_seconds: float,
        lost_seconds: float,
        ends_task: bool,
    ) -> None:
        super().__init__()
        self.place, self.models, self.producer, self.ends_task = place, models, producer, ends_task
        self.poll_seconds, self.lost_seconds = poll_seconds, lost_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("place", "models", "producer", "poll_seconds", "lost_seconds", "ends_task")
        return "mergeplan.airflow.triggers.ModelTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for a step, and name it."""
        try:
            watch = await self._open_watch()
        except Exception as error:  # a missing state, a connection that is not defined: the task says so
            yield self._fail(f"The state cannot be opened. {error}")
            return
        decision = await self._wait(watch)
        self.log.info("%s", decision.reason)
        if decision.step is Step.NOTHING_DUE:
            yield TaskSuccessEvent()
        elif decision.step is Step.SUCCEED and self.ends_task:
            for model in decision.models:
                await asyncio.to_thread(watch.reader.report, watch.id, model.name)
            yield TaskSuccessEvent(
                xcoms={"return_value": present([model.data for model in decision.models], len(self.models))}
            )
        else:
            yield TriggerEvent({"step": decision.step.value, "reason": decision.reason})

    def _fail(self, reason: str) -> TriggerEvent:
        self.log.error("%s", reason)
        return TriggerEvent({"step": Step.FAIL.value, "reason": reason})

    async def _open_watch(self) -> RunWatch:
        instance, place = self.task_instance, Place.deserialize(self.place)
        url = _URLS.setdefault(place.state_conn_id, Shared(lambda: find_state_url(place), CONNECTION_SECONDS))
        reader = await asyncio.to_thread(open_reader, place, await url.get() or "")
        watch = RunWatch(reader, instance.dag_id, instance.run_id, self.producer, self.poll_seconds)
        return _WATCHES.setdefault((reader, watch.id), watch)

    async def _wait(self, watch: RunWatch) -> Decision:
        logged_reason, why_absent, read_at = "", "", time.monotonic()
        while True:
            try:
                decision = await watch.decide(self.models, self.lost_seconds)
                read_at = time.monotonic()
                if decision.step is Step.WAIT and why_absent and why_absent == await watch.explain_absence():
                    return Decision(Step.FAIL, why_absent)  # twice: the record may have come between two questions
                why_absent = await watch.explain_absence()
            except StateError as error:  # a database that is away for a moment
                decision = Decision(Step.WAIT, f"The state cannot be read: {error}")
                if time.monotonic() - read_at >= self.lost_seconds:
                    return Decision(Step.FAIL, decision.reason)
            if decision.step is not Step.WAIT:
                return decision
            if decision.reason != logged_reason:
                logged_reason = decision.reason
                self.log.info("%s", logged_reason)
            await asyncio.sleep(self.poll_seconds)
