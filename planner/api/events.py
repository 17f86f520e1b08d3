"""The journal of a job as server-sent events: each line is one, and its number is the id."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread

from mergeplan.planner.api.jobs.store import JobStore

MEDIA_TYPE = "text/event-stream"
POLL = 0.25  # seconds between two looks at the journal
PING = 15.0  # seconds of silence, after which a comment shows that the line is up
RETRY = b"retry: 2000\n\n"  # milliseconds until a browser asks again


async def stream_events(jobs: JobStore, job_id: str, last: int) -> AsyncIterator[bytes]:
    """The events after the last that was received, until the job has ended and all were sent."""
    journal, position, number, silence = jobs.journal(job_id), 0, 0, 0.0
    yield RETRY
    while True:
        record = jobs.get(job_id)  # before the lines are read: those of a job that has ended are all there
        lines, position = await anyio.to_thread.run_sync(journal.read_from, position)
        for line in lines:
            number += 1
            if number > last and (event := format_event(number, line)):
                silence = 0.0
                yield event
        if lines:
            continue
        if record is None or record.status.is_final:
            return
        await anyio.sleep(POLL)
        silence += POLL
        if silence >= PING:
            silence = 0.0
            yield b": ping\n\n"


def format_event(number: int, line: bytes) -> bytes:
    """A line as an event; `b""` for what is no line of ours, as what a library prints."""
    try:
        name = json.loads(line).get("event")
    except (ValueError, AttributeError):
        return b""
    if not isinstance(name, str) or not name.isidentifier():
        return b""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), line.replace(b"\r", b""))
