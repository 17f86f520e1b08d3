"""Locks and pools for a dbt that runs in one process."""

import concurrent.futures
import threading
from multiprocessing.context import BaseContext


def use_thread_locks() -> None:
    """Give dbt locks without shared memory, which an isolated process does not have: here are only threads.

    dbt's check of semantic models makes a pool of processes, which needs such locks, and starts none.
    """
    for name, lock in (("RLock", threading.RLock), ("Lock", threading.Lock)):
        setattr(BaseContext, name, staticmethod(lock))
    vars(concurrent.futures)["ProcessPoolExecutor"] = concurrent.futures.ThreadPoolExecutor
