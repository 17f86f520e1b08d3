"""A limit of the processor's time for templates, which may loop for ever."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mergeplan.planner.python.dbt_code.compile_error import CompileError


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise CompileError within the context when the time is up; it names the file that dbt was parsing, if any.

    Jinja may turn it into another error on the way, and dbt into a result.
    """
    message = ""

    def stop(_signal: int, frame: FrameType | None) -> None:
        nonlocal message
        path = _parsed_file(frame)
        subject = f"The template {path}" if path else "Its template"
        message = f"{subject} does not end: dbt was stopped after {seconds:.0f} seconds"
        raise CompileError(message)

    former_handler = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except Exception:
        if not message:
            raise
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former_handler)
    if message:
        raise CompileError(message)


def _parsed_file(frame: FrameType | None) -> str:
    """Return the file of the node whose template dbt renders while it parses; '' while it compiles."""
    while frame is not None:
        node = frame.f_locals.get("parsed_node")
        if path := getattr(node, "original_file_path", ""):
            return str(path)
        frame = frame.f_back
    return ""
