"""What a repository's files say to the bot, parsed in a child with limits: nothing of them is parsed in the service.

However that child ends, the end is a ProjectError at the file. An answer is remembered by the text that was read, so
that a child starts only for what is new.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import structlog
from pydantic import TypeAdapter

from mergeplan.bot.child.dbt_requirements import DbtRequirements
from mergeplan.bot.child.reading import CPU_SECONDS, MEMORY, OUT_OF_MEMORY
from mergeplan.bot.child.requirements import Requirements
from mergeplan.bot.cicd_section import CicdSection
from mergeplan.planner.errors import Place, ProjectError

log = structlog.get_logger(__name__)
CHILD = (sys.executable, "-I", "-m", "mergeplan.bot.child.reading")
CODE_CHILD = (sys.executable, "-I", "-m", "mergeplan.bot.child.code_reading")
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
WALL_SECONDS = 60.0  # for a machine that is busy: its own limit is of the processor's time
LONGEST = 4_000_000  # characters of a file
LONGEST_ANSWER = 4_000_000
REMEMBERED = 200
DBT_REQUIREMENTS = TypeAdapter[DbtRequirements | None](DbtRequirements | None)
SIMPLER = "Make the file simpler: something in it is nested very deeply, repeated very often, or very long."


@dataclass(frozen=True)
class CodeFolder:
    """The folder that a config.py runs in: the version of its files, how to open it, and how code is isolated."""

    version: str
    open: Callable[[], AbstractContextManager[Path]]
    isolation: Mapping[str, str]  # environment variables


class RepositoryReader:
    """Reads files of repositories; safe to use from many threads."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Any] = OrderedDict()  # by request: a value, or a ProjectError
        self._lock = threading.Lock()

    def section(self, path: str, text: str, folder: CodeFolder | None = None) -> CicdSection:
        """Return `cicd_bot` of a configuration; raise ProjectError. A config.py needs its `folder`."""
        return CicdSection(**self._read_cached("section", path, {"path": path, "text": text}, folder))

    def requirements(self, texts: Mapping[str, str]) -> Requirements | None:
        """Return the requirements of files, by name, that can name packages; raise ProjectError if one is wrong."""
        if not texts:
            return None
        answer = self._read_cached("requirements", next(iter(texts)), texts)
        return Requirements(answer["path"], tuple(answer["lines"])) if answer else None

    def dbt_requirements(self, texts: Mapping[str, str]) -> DbtRequirements | None:
        """Return the dbt requirements of the files that can name packages; raise ProjectError if one is wrong."""
        if not texts:
            return None
        answer = self._read_cached("dbt_requirements", next(iter(texts)), texts)
        return DBT_REQUIREMENTS.validate_python(answer)

    def owners(self, path: str, text: str, files: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the owners of each of these files by the text of CODEOWNERS; raise ProjectError."""
        answer = self._read_cached("owners", path, {"text": text, "paths": files})
        return {file: tuple(owners) for file, owners in answer.items()}

    def _read_cached(self, reads: str, path: str, inputs: Mapping[str, Any], folder: CodeFolder | None = None) -> Any:
        if sum(map(len, inputs.values())) > LONGEST:
            raise ProjectError(f"The file has more than {LONGEST} characters.", place=Place(path))
        key = sha256(json.dumps([reads, inputs, folder.version if folder else ""]).encode()).hexdigest()
        with self._lock:
            is_cached = key in self._answers
            answer = self._answers.get(key)
        if not is_cached:
            with folder.open() if folder else nullcontext() as place:
                request = {"reads": reads, "given": {**inputs, **({"folder": str(place)} if place else {})}}
                answer = _ask_child(CODE_CHILD if folder else CHILD, json.dumps(request), path, folder)
            with self._lock:
                self._answers[key] = answer
                while len(self._answers) > REMEMBERED:
                    self._answers.popitem(last=False)
        if isinstance(answer, ProjectError):
            raise answer
        return answer


def _ask_child(command: Sequence[str], request: str, path: str, folder: CodeFolder | None) -> Any:
    """Return the child's answer, or its ProjectError; raise an error that the file did not cause."""
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    environment |= folder.isolation if folder else {}
    child = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        out, _ = child.communicate(request.encode(), timeout=WALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise _unreadable_error(path, f"Reading the file took longer than {WALL_SECONDS:.0f} seconds.") from None
    finally:
        with suppress(OSError):
            child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe:
                pipe.close()
    if child.returncode or len(out) > LONGEST_ANSWER:
        log.warning("file_not_read", path=path, exit_code=child.returncode)
        return _unreadable_error(path, _describe_exit(child.returncode))
    answer = json.loads(out)
    if error := answer.get("error"):
        place = Place(**error["place"]) if error["place"] else Place(path)
        return ProjectError(error["message"], place=place, hint=error["hint"])
    return answer["value"]


def _describe_exit(exit_code: int) -> str:
    if exit_code == 0:
        return f"The content of the file has more than {LONGEST_ANSWER} characters."
    if exit_code == OUT_OF_MEMORY:
        return f"Reading the file took more than {MEMORY >> 20} MiB of memory."
    if exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"Reading the file took more than {CPU_SECONDS} seconds of the processor's time."
    name = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
    return f"Reading the file ended its process ({name})."


def _unreadable_error(path: str, message: str) -> ProjectError:
    return ProjectError(message, place=Place(path), hint=SIMPLER)
