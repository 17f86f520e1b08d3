"""The first of several threads works alone; the others wait for it, and then for nobody."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mergeplan.planner.first_alone import FirstAlone


def test_the_first_works_alone_and_the_others_at_the_same_time() -> None:
    together, turns, inside = threading.Barrier(3, timeout=10), FirstAlone(), list[int]()

    def work(number: int) -> int:
        with turns.turn("schema"):
            inside.append(number)
            if len(inside) > 1:  # the second and the two after it: without each other they would not go on
                together.wait()
            return len(inside)

    with ThreadPoolExecutor(4) as pool:
        assert min(pool.map(work, range(4))) == 1


def test_whoever_fails_lets_the_next_one_try_alone() -> None:
    turns = FirstAlone()
    with pytest.raises(OSError, match="away"), turns.turn("schema"):
        raise OSError("away")

    with turns.turn("schema"):
        pass
    with turns.turn("schema"), turns.turn("schema"):  # nobody waits for anybody any more
        pass
