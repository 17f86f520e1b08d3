"""The triggerer's side of a model's task: it waits for the model in mergeplan's state, and holds no worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

from mergeplan.airflow.connections import find_state_url, run_key
from mergeplan.airflow.decisions import Decision, Step, decide
from mergeplan.airflow.place import Place
from mergeplan.airflow.state import RunWatch, StateReader, state_reader
from mergeplan.planner.errors import RequestError

_WATCHES: WeakValueDictionary[tuple[StateReader, str], RunWatch] = WeakValueDictionary()


class ModelTrigger(BaseTrigger):
    """Fires when the run of its task instance has a result for the model; where nothing was due it ends the task."""

    def __init__(
        self, place: Mapping[str, Any], model: str, poll_seconds: float, lost_seconds: float, ends_task: bool
    ) -> None:
        super().__init__()
        self.place, self.model, self.ends_task = place, model, ends_task
        self.poll_seconds, self.lost_seconds = poll_seconds, lost_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Its class and arguments."""
        names = ("place", "model", "poll_seconds", "lost_seconds", "ends_task")
        return "mergeplan.airflow.triggers.ModelTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for a step, and name it."""
        instance = self.task_instance
        run_id = run_key(instance.dag_id, instance.run_id)
        place = Place.deserialize(self.place)
        reader = await asyncio.to_thread(state_reader, place, await find_state_url(place))
        watch = _WATCHES.setdefault((reader, run_id), RunWatch(reader, run_id, self.poll_seconds))
        decision = await self._wait(watch)
        self.log.info("%s", decision.reason)
        if decision.step is Step.NOTHING_DUE:
            yield TaskSuccessEvent()
        elif decision.step is Step.SUCCEED and decision.model is not None and self.ends_task:
            await asyncio.to_thread(reader.report, run_id, self.model)
            yield TaskSuccessEvent(xcoms={"return_value": decision.model.data})
        else:
            yield TriggerEvent({"step": decision.step.value, "reason": decision.reason})

    async def _wait(self, watch: RunWatch) -> Decision:
        said = ""
        while True:
            try:
                decision = decide(await watch.view(), self.model, self.lost_seconds)
            except RequestError as error:  # a database that is away for a moment; the task's timeout ends it
                decision = Decision(Step.WAIT, f"The state cannot be read: {error}")
            if decision.step is not Step.WAIT:
                return decision
            if decision.reason != said:
                said = decision.reason
                self.log.info("%s", said)
            await asyncio.sleep(self.poll_seconds)
