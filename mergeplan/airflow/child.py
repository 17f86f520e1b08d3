"""mergeplan as a child process: its JSON lines become log lines, its exit code an error. Standard library only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

POLL_SECONDS = 10.0  # between two tries while another run is at work
END_SECONDS = 60.0  # for a command that is to end, before it is killed


class CommandFailed(RuntimeError):
    """mergeplan ended with an error; its text is mergeplan's message."""


@dataclass
class Command:
    """A running mergeplan, which `stop` ends with all that it started."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    log: Callable[[str], None]
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    stopped: bool = False

    def run_lines(self) -> dict[str, Any]:
        """Run it with JSON lines and return its result, with the models that failed under `failed`.

        CommandFailed when it ends with an error that is none of a model, or without a result.
        """
        last: dict[str, Any] = {}
        error, failed = "", list[str]()
        for line in self._lines():
            event = _parse(line)
            if event is None:
                self.log(line)
                continue
            last = event
            if event["event"] == "error":
                error = error or _describe_error(event)
            elif event["event"] == "failed":
                failed.append(str(event.get("model", "")))
            if text := describe_line(event):
                self.log(text)
        code = self._exit_code()
        if last.get("event") == "result" and (failed or not error):
            return {**last, "failed": failed}
        raise CommandFailed(error or f"`{self.argv[0]}` ended with exit code {code} and no result.")

    def run_text(self) -> str:
        """Run it and return its output; CommandFailed when its exit code is not 0."""
        lines = []
        for line in self._lines():
            lines.append(line)
            self.log(line)
        code = self._exit_code()
        if code:
            raise CommandFailed(f"`{' '.join(self.argv[:2])}` ended with exit code {code}.")
        return "\n".join(lines)

    def stop(self) -> None:
        """End it and what it started: what is computed stays recorded."""
        self.stopped = True
        if self.process is None or self.process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)

    def _lines(self) -> Iterator[str]:
        try:
            self.process = subprocess.Popen(
                list(self.argv),
                env=dict(self.environ),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            hint = 'Install mergeplan on the workers, or name its command in the DAG: command="/path/to/mergeplan".'
            raise CommandFailed(f"`{self.argv[0]}` cannot be started: {error.strerror}. {hint}") from None
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                yield line.rstrip("\n")

    def _exit_code(self) -> int:
        assert self.process is not None
        return self.process.wait()


def run_in_turn(make: Callable[[], Command], go_on: Callable[[], bool] = lambda: True) -> dict[str, Any]:
    """Run a command again until it no longer leaves its work to another run in the same environment.

    `go_on` is called before each try. Return the last line; {} if another try is not needed.
    """
    while go_on():
        command = make()
        result = command.run_lines()
        if not result.get("skipped"):
            return result
        if command.stopped:
            raise CommandFailed("It was stopped.")
        time.sleep(POLL_SECONDS)
    return {}


def describe_line(event: Mapping[str, Any]) -> str:
    """Return a line of mergeplan as a line of a log; '' for one that a log does not need."""
    model = event.get("model", "")
    match event.get("event"):
        case "batch":
            start, end = event.get("interval") or ("", "")
            return f"{model} [{start} - {end}]: {event.get('rows')} rows in {event.get('seconds', 0):.1f} s"
        case "audit":
            return f"{model}: audit {event.get('name')} found {event.get('count')} rows"
        case "failed":
            return f"{model} failed: {event.get('message')}"
        case "skipped":
            return f"{model} was skipped: `{event.get('because')}` failed"
        case "warning" | "error":
            return _describe_error(event)
        case "result":
            return str(event.get("skipped") or "")
    return ""


def _describe_error(event: Mapping[str, Any]) -> str:
    line = f":{event['line']}" if event.get("line") else ""
    place = f"{event['path']}{line}: " if event.get("path") else ""
    return f"{place}{event.get('message', '')} {event.get('hint', '')}".strip()


def _parse(line: str) -> dict[str, Any] | None:
    """Parse a JSON line of mergeplan; return None for any other."""
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
