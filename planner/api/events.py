"""The journal of a job as server-sent events: each line is one, and its number is the id."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
import anyio.to_thread

from mergeplan.planner.api.jobs.store import JobStore

MEDIA_TYPE = "text/event-stream"
POLL, SLOWEST = 0.25, 1.0  # seconds between two looks at the journal: after a line, and after many of silence
OPEN_MOST = 256  # streams of one server at once
READERS = 4  # threads that read journals: other requests have their own
PING = 15.0  # seconds of silence, after which a comment shows that the line is up
RETRY = b"retry: 2000\n\n"  # milliseconds until a browser asks again


@dataclass
class Streams:
    """The open event streams of one server: each takes a connection and looks at files, so there are not too many."""

    open: int = 0  # counted on the event loop alone
    _limiter: anyio.CapacityLimiter | None = None

    @property
    def is_full(self) -> bool:
        """True when no other stream is opened."""
        return self.open >= OPEN_MOST

    async def follow(self, jobs: JobStore, job_id: str, last: int) -> AsyncIterator[bytes]:
        self._limiter = self._limiter or anyio.CapacityLimiter(READERS)
        self.open += 1
        try:
            async for event in stream_events(jobs, job_id, last, self._limiter):
                yield event
        finally:
            self.open -= 1


async def stream_events(
    jobs: JobStore, job_id: str, last: int, limiter: anyio.CapacityLimiter | None = None
) -> AsyncIterator[bytes]:
    """Yield the events after the last that was received, until the job has ended and all were sent."""
    journal, position, number, silence, pause = jobs.journal(job_id), 0, 0, 0.0, POLL
    yield RETRY
    while True:
        record = jobs.get(job_id)  # before the lines are read: those of a job that has ended are all there
        lines, position = await anyio.to_thread.run_sync(journal.read_from, position, limiter=limiter)
        for line in lines:
            number += 1
            if number > last and (event := format_event(number, line)):
                silence = 0.0
                yield event
        if lines:
            pause = POLL
            continue
        if record is None or record.status.is_final:
            return
        await anyio.sleep(pause)
        silence += pause
        pause = min(SLOWEST, pause * 1.2)
        if silence >= PING:
            silence = 0.0
            yield b": ping\n\n"


def format_event(number: int, line: bytes) -> bytes:
    """Return a line as an event, or `b""` for other text, such as the output of a library."""
    try:
        name = json.loads(line).get("event")
    except (ValueError, AttributeError):
        return b""
    if not isinstance(name, str) or not name.isidentifier():
        return b""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), line.replace(b"\r", b""))
