"""A Spark of this machine that only compares plans, for a Spark Connect server (which shows none) and for a warm Spark.

An optimizer computes constants, so a query can cost it any time and memory. It runs in a process that can be ended.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mergeplan.planner.engine.analysis import TOO_SLOW, Analysis, PairResult
from mergeplan.planner.engine.spark.connect.analyzer_child import ERROR, REFUSED, RESULT, STARTED
from mergeplan.planner.errors import QueryError, RequestError
from mergeplan.planner.serial import decode_json, encode_json

CHILD = "mergeplan.planner.engine.spark.connect.analyzer_child"
START_SECONDS = 180.0
PROCESSES_MAX = 2  # at one time: a comparison that takes long holds up no other
LOST_MAX = 2  # processes that one analysis may cost
IDLE_SECONDS = 900.0
TOO_BIG = "Spark ended while it compared its plans, for which it may have lacked memory"
UNKNOWN_FUNCTION = re.compile(r"cannot resolve (the )?routine", re.IGNORECASE)
FUNCTIONS = "it calls a function of the server"


class LocalAnalyzer:
    """Processes that compare plans; the first starts with the first comparison."""

    def __init__(self) -> None:
        self._places = threading.Semaphore(PROCESSES_MAX)
        self._lock = threading.Lock()
        self._idle: list[AnalyzerProcess] = []
        self._used_at = time.monotonic()

    def compare_queries(self, analysis: Analysis) -> tuple[PairResult, ...] | None:
        """Return what a Spark of this machine says of pairs of queries; None where none can be started.

        A function that only the server has leaves a pair unjudged.
        """
        with self._places:
            try:
                return tuple(
                    replace(result, error="", unknown=FUNCTIONS) if UNKNOWN_FUNCTION.search(result.error) else result
                    for result in self._compare(analysis)
                )
            except RequestError:  # pyspark is a client here
                return None

    def close_idle(self) -> None:
        """End the processes that nobody has used for a while."""
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _compare(self, analysis: Analysis) -> list[PairResult]:
        results, lost = list[PairResult](), 0
        while lost < LOST_MAX:
            process = self._take_process()
            try:
                results += process.compare(replace(analysis, pairs=analysis.pairs[len(results) :]))
            except ProcessLostError as error:
                results = [*results, *error.results, PairResult(gave_up=error.reason)]
                lost += 1
                if len(results) >= len(analysis.pairs):
                    return results
            except QueryError:
                self._give_back(process)
                raise
            else:
                self._give_back(process)
                return results
        return results + [PairResult(gave_up=results[-1].gave_up)] * (len(analysis.pairs) - len(results))

    def _take_process(self) -> AnalyzerProcess:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        return process if process and process.is_alive else AnalyzerProcess()

    def _give_back(self, process: AnalyzerProcess) -> None:
        self._used_at = time.monotonic()
        with self._lock:
            self._idle.append(process)


class ProcessLostError(Exception):
    """A process was ended, or ended by itself, after these results."""

    def __init__(self, reason: str, results: Sequence[PairResult]) -> None:
        super().__init__(reason)
        self.reason, self.results = reason, results


class AnalyzerProcess:
    """A process with a Spark of its own; raise RequestError if it cannot be started."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="mergeplan-analyzer-")  # a process that is killed removes nothing
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", CHILD, self._folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()
        self._java = 0
        try:
            word, value = self._next_answer(START_SECONDS)
        except ProcessLostError:
            word, value = REFUSED, "it does not start."
        if word != STARTED:
            self.end()
            raise RequestError(f"no Spark can be started to compare plans: {value}")
        self._java = int(value)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def compare(self, analysis: Analysis) -> list[PairResult]:
        """Return the verdict on each pair; raise QueryError as Spark does, and ProcessLostError."""
        assert self._process.stdin is not None
        results = list[PairResult]()
        try:
            with suppress(BrokenPipeError):  # no answer comes then
                self._process.stdin.write(f"{json.dumps(encode_json(analysis))}\n")
                self._process.stdin.flush()
            while (answer := self._next_answer(analysis.patience, results))[0] == RESULT:
                results.append(decode_json(PairResult, answer[1]))
        except BaseException:
            self.end()
            raise
        if answer[0] == ERROR:
            raise QueryError(answer[1])
        return results

    def end(self) -> None:
        for group in (self._process.pid, self._java):
            if group:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()

    def _next_answer(self, seconds: float, results: Sequence[PairResult] = ()) -> tuple[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise ProcessLostError(TOO_SLOW, results) from None
        if not line:
            raise ProcessLostError(TOO_BIG, results)
        word, value = json.loads(line)
        return word, value

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")
