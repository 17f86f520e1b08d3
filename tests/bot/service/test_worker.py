"""Who works on what: a job that only waits for GitHub keeps no other from being worked on."""

from __future__ import annotations

import threading

from mergeplan.bot.github.turns import Turns
from mergeplan.bot.pulls.decide import LAYER_WAIT
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.service.worker import Worker, is_overdue
from tests.bot.changing import change_record
from tests.bot.conftest import Bench, until


def test_a_job_that_waits_for_its_turn_to_write_leaves_its_place_to_another(bench: Bench) -> None:
    """As many are worked on as there are workers, and those that wait are not counted."""
    bench.worker.stop()
    worker, turns = Worker(bench.context), Turns(0.0)
    with turns.turn():
        waits = threading.Thread(target=lambda: turns._take_turn(False, lambda: False))
        waits.start()
        until(lambda: len(turns._waiting) == 1, 10)
        worker._held = {"ann/shop#1": threading.get_ident(), "ann/shop#2": threading.get_ident()}
        bench.context.inbox.queue.wake("ann/shop", 3)
        assert worker.claim() is None
        worker._held["ann/shop#2"] = waits.ident or 0
        job = worker.claim()
    waits.join()
    assert job is not None
    assert job.number == 3


def test_the_timer_looks_at_a_layer_that_waited_for_half_an_hour() -> None:
    """It waited for good where the plan below took longer, since nothing else happened to it."""
    record = change_record(PullRecord("ann/shop", 8, PullState.WAITING), waits_since=50.0)
    moments = (50.0 + LAYER_WAIT - 1, 50.0 + LAYER_WAIT)

    assert [is_overdue(record, now) for now in moments] == [False, True]
    assert not is_overdue(change_record(record, state=PullState.PLANNED), moments[1])
