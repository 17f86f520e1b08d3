"""Who works on what: a job that only waits for GitHub keeps no other from being worked on."""

from __future__ import annotations

import threading

from mergeplan.bot.github.turns import Turns
from mergeplan.bot.service.worker import Worker
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
