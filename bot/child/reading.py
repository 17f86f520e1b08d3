"""The child that parses what a repository holds: one request on standard input, one answer, within limits.

A file can make a parser take all memory, run for hours, or end its process. It ends this one.
"""

import json
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from mergeplan.bot.child.dbt_requirements import DbtRequirements, Texts, dbt_requirements_of
from mergeplan.bot.child.requirements import Requirements, requirements_of
from mergeplan.bot.cicd_section import read_section
from mergeplan.bot.policy.codeowners import owners_of, read_owners
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.isolation.system import hide_process

CPU_SECONDS = 5
MEMORY = 1 << 30
OUT_OF_MEMORY = 9  # the exit code
Readers = Mapping[str, Callable[..., object]]


def _load_requirements(read: Callable[[Texts], Requirements | DbtRequirements | None], **texts: str) -> object:
    requirements = read(texts.get)
    return asdict(requirements) if requirements else None


def _match_owners(text: str, paths: Sequence[str]) -> object:
    owned = read_owners(text)
    return {path: owners_of(path, owned) for path in paths}


READERS: Readers = {
    "section": lambda path, text: asdict(read_section(path, text)),
    "requirements": partial(_load_requirements, requirements_of),
    "dbt_requirements": partial(_load_requirements, dbt_requirements_of),
    "owners": _match_owners,
}


def answer_one(readers: Readers) -> None:
    """Answer one request; OUT_OF_MEMORY, or a signal, where a limit is reached."""
    hide_process()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    request = json.load(sys.stdin)
    try:
        line = json.dumps(_answer_request(readers, request), default=str, allow_nan=False)
    except MemoryError:
        raise SystemExit(OUT_OF_MEMORY) from None
    sys.stdout.write(line)


def _answer_request(readers: Readers, request: Mapping[str, Any]) -> Mapping[str, object]:
    try:
        return {"value": readers[request["reads"]](**request["given"])}
    except ProjectError as error:
        return {"error": {"message": error.message, "hint": error.hint, "place": error.place and asdict(error.place)}}


if __name__ == "__main__":
    answer_one(READERS)
