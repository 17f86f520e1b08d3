"""Limits of templates, which may loop for ever, and of YAML: dbt copies and renders every value, aliases expanded."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

VALUES_MAX = 1_000_000  # as for files that mergeplan reads itself


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


def limit_yaml() -> None:
    """Refuse a file with more values, whichever loader of this process reads it from now on."""
    import yaml

    constructor: Any = yaml.constructor.BaseConstructor
    construct_document = constructor.construct_document

    def construct_limited(self: Any, node: yaml.Node) -> Any:
        if count_values(node) > VALUES_MAX:
            problem = f"the file has more than {VALUES_MAX} values when its aliases are expanded"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return construct_document(self, node)

    constructor.construct_document = construct_limited


def count_values(node: Any) -> int:
    """Return how many values a node contains, aliases repeated; more than any limit for a node that contains itself."""
    counts: dict[int, int] = {}
    waiting = [node]
    while waiting:
        node = waiting[-1]
        parts = (
            []
            if isinstance(node.value, str)
            else [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        )
        new = [part for part in parts if id(part) not in counts] if counts.get(id(node)) is None else []
        counts.setdefault(id(node), VALUES_MAX + 1)  # until its parts are counted
        if new:
            waiting += new
            continue
        waiting.pop()
        if counts[id(node)] == VALUES_MAX + 1:
            counts[id(node)] = 1 + sum(counts[id(part)] for part in parts)
    return counts[id(node)]
