"""The server of every child of project code: it handles requests over two pipes until its parent has gone.

Requests and replies are lines of JSON, over two pipes that the project's code does not see: standard input is empty,
and output of the code goes to standard error. The module imports little, since a process starts for it.
"""

import json
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import IO, Any, Protocol

GRACE = 2.0  # seconds that ending may take
TABLE = re.compile(r"\w+\.\w+")
Locate = Callable[[BaseException], tuple[str, int]]  # the file of the project and the line of an error, or ('', 0)


class Work(Protocol):
    def answer(self, request: Mapping[str, Any]) -> Any: ...

    def locate(self, error: BaseException) -> tuple[str, int]:
        """Return the file of the project and the line of an error; '' if no file of the project is involved."""

    def interrupt(self) -> None:
        """Stop what would continue after this process."""


def error_data(error: BaseException, locate: Locate) -> dict[str, Any]:
    path, line = locate(error)
    if isinstance(error, SyntaxError):
        message = f"This is not Python: {error.msg}"
    elif isinstance(error, SystemExit):
        message = f"It exited Python: SystemExit: {error.code}"
    elif getattr(error, "is_sentence", False) is True:
        message = str(error)
    else:
        text = (str(error).strip().splitlines() or [""])[0]  # its reader leaves out more of the middle
        text = text if len(text) <= 2000 else f"{text[:1000]}{text[-1000:]}"
        message = f"{type(error).__name__}: {text}".rstrip(": ")
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "sqlmesh":
        message = (
            f"{message.partition(' (')[0]}. This `sqlmesh` is mergeplan's own, with what models, macros and signals"
        )
        message += " need: remove the import"
    elif isinstance(error, ModuleNotFoundError):
        message += ". Install it in mergeplan's environment, and name it in requirements.txt"
    message = message.encode("utf-8", "replace").decode()  # an incomplete character is not JSON
    data = {"message": message, "path": path, "line": line, "called": isinstance(error, TypeError) and not path}
    wants = getattr(error, "wants", "")
    return {**data, "wants": wants} if isinstance(wants, str) and TABLE.fullmatch(wants) else data


def serve_requests(asking: IO[str], answering: IO[str], work: Work) -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in asking:
            lines.put(line)
        # the planner has ended, or wants this to end; do not wait for a Spark that does not respond
        late = threading.Timer(GRACE, _end_group)
        late.daemon = True
        late.start()
        work.interrupt()
        _end_group()

    threading.Thread(target=read, daemon=True).start()
    while True:
        request = json.loads(lines.get())
        try:
            answer = {"ok": work.answer(request)}
            text = json.dumps(answer)
        except BaseException as error:
            text = json.dumps({"error": error_data(error, work.locate)})
        sys.stdout.flush()
        sys.stderr.flush()
        answering.write(text + "\n")
        answering.flush()


def serve_pipes(work: Work) -> None:
    """Take the two pipes away from standard input and output, and serve over them."""
    asking, answering = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    _process_group()
    serve_requests(os.fdopen(asking, encoding="utf-8"), os.fdopen(answering, "w", encoding="utf-8"), work)


@cache
def _process_group() -> int:
    return os.getpgrp()


def _end_group() -> None:
    if _process_group() == os.getpid():
        os.killpg(_process_group(), signal.SIGKILL)
    os._exit(1)
