"""Sessions of an agent with a server over a small project, by the SDK's own client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, TextContent

from mergeplan.planner.agents.server import make_server, open_toolbox
from mergeplan.planner.api.access import VARIABLE, Access, Scope
from mergeplan.planner.session.settings import SessionSettings

TOKENS = {scope: f"{scope}-{'t' * 32}" for scope in Scope}
Script = Callable[[Client], Awaitable[Any]]
Calls = tuple[tuple[str, dict[str, Any]], ...]
RULES = "tools: {apply: allow}\n"


class Person:
    """A person who approves, or does not, and the questions that were asked."""

    def __init__(self, approves: bool) -> None:
        self.approves, self.questions = approves, list[str]()

    async def answer(self, _: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        return ElicitResult(action="accept", content={"approve": self.approves})


def data(result: CallToolResult) -> dict[str, Any]:
    """The answer of a call that did not fail."""
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def message(result: CallToolResult) -> str:
    """The sentence of a call that failed."""
    assert result.is_error, result.structured_content
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def converse(root: Path, script: Script, *options: str, person: Person | None = None, mode: str = "auto") -> Any:
    """What a script makes of a session with `mergeplan mcp` on standard input and output."""

    async def session() -> Any:
        environment = {**os.environ, "MERGEPLAN_HOME": str(root / ".mergeplan")}
        arguments = ["-m", "mergeplan", "mcp", "-p", str(root), *options]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
        callback = person.answer if person else None
        async with Client(stdio_client(server), elicitation_callback=callback, mode=mode) as client:
            return await script(client)

    return anyio.run(session)


def talk(root: Path, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    """The answers of one session with a server of its own."""
    return list(converse(root, call_each(calls)))


def call_each(calls: Calls) -> Script:
    """The script that makes these calls, one after another."""

    async def script(client: Client) -> list[CallToolResult]:
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    return script


def converse_inside(settings: SessionSettings, script: Script, policy: Path | None = None) -> Any:
    """What a script makes of a session with a server in this process."""
    toolbox = open_toolbox(settings, Access(), dict(os.environ), policy=policy)

    async def session() -> Any:
        async with Client(make_server(toolbox)) as client:
            return await script(client)

    try:
        return anyio.run(session)
    finally:
        toolbox.close()


@contextmanager
def serve_http(root: Path, *options: str, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a `mergeplan mcp --http` with tokens."""
    tokens = {VARIABLE.format(scope.upper()): token for scope, token in TOKENS.items()}
    command = [sys.executable, "-m", "mergeplan", "mcp", "-p", str(root), "--http", "--port", "0", *options]
    environment = {**os.environ, "MERGEPLAN_HOME": str(root / ".mergeplan"), **(variables or tokens)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def converse_http(address: str, scope: Scope, script: Script, person: Person | None = None, mode: str = "auto") -> Any:
    """What a script makes of a session over HTTP with the token of a scope."""

    async def session() -> Any:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKENS[scope]}"}, timeout=60) as web:
            transport = streamable_http_client(address, http_client=web)
            callback = person.answer if person else None
            async with Client(transport, elicitation_callback=callback, mode=mode) as client:
                return await script(client)

    return anyio.run(session)


async def finish(client: Client, result: CallToolResult, seconds: int = 900) -> dict[str, Any]:
    """The job that a call started, when it has ended."""
    job_id = data(result)["id"]
    for _ in range(seconds // 10):
        job = data(await client.call_tool("job", {"job_id": job_id, "wait": 10}))
        if job["status"] not in ("waiting", "running"):
            return job
    raise AssertionError(f"{job_id} is still {job['status']}")


async def cancel_jobs(client: Client) -> None:
    """End every job that has not ended."""
    for job in data(await client.call_tool("jobs", {}))["jobs"]:
        if job["status"] in ("waiting", "running"):
            await client.call_tool("cancel", {"job_id": job["id"]})
