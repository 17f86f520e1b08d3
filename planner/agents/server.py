"""The tools as a server of the Model Context Protocol, on stdio or over HTTP. Only it imports the `mcp` SDK."""

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import BaseModel, Field
from starlette.types import ASGIApp

from mergeplan.planner.agents.audit_log import AuditLog
from mergeplan.planner.agents.calls import Answer, Calls, Toolbox
from mergeplan.planner.agents.job_tools import JobTools
from mergeplan.planner.agents.jobs import AgentJobs
from mergeplan.planner.agents.policy import LOCAL, read_policy
from mergeplan.planner.agents.tools import Tools
from mergeplan.planner.api.access import Access, Principal
from mergeplan.planner.api.guard import Guard
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.parsing.files.agent_rules import TOOLS, Decision, ToolGroup
from mergeplan.planner.session.settings import SessionSettings, refuse_spark
from mergeplan.planner.versions import mergeplan_version

INSTRUCTIONS = (
    "Tools for the Spark models of one mergeplan project. Before you edit a model, ask `impact` with the text that you "
    "propose. A long operation is a job: a tool starts it, and `job` reads it. Rows of tables are masked or left out. "
    "You can apply a plan by its id to an environment that is not prod; to prod you can only open a pull request. "
    "Lists are paged: `total`, `limit`, `offset`."
)
KEY = "approval"
FIRST_WITH_INPUT = "2026-07-28"  # the protocol that asks by an answer; those before ask by a request of the server
CallerOf = Callable[[Context[Any, Any]], Principal | None]


class Approval(BaseModel):
    """A person's answer."""

    approve: bool = Field(description="Allow this call.")


def make_server(toolbox: Toolbox, caller_of: CallerOf = lambda _: LOCAL) -> MCPServer[Any]:
    """Return the server; `caller_of` returns the sender of a request, or None if it may call no tool."""

    server: MCPServer[Any] = MCPServer(
        "mergeplan",
        instructions=INSTRUCTIONS,
        version=mergeplan_version(),
        log_level="WARNING",
        request_state_security=RequestStateSecurity(keys=[os.urandom(32)]),
    )
    calls = Calls(toolbox)
    for name, tool in toolbox.tools.items():
        description = " ".join((tool.__doc__ or "").split())
        group = TOOLS[name]
        changes = group is ToolGroup.APPLY
        reads = group is ToolGroup.READ
        hints = ToolAnnotations(
            read_only_hint=reads, destructive_hint=changes, idempotent_hint=reads, open_world_hint=False
        )
        server.tool(name, description=description, annotations=hints)(_wrap_tool(calls, name, tool, caller_of))
    return server


def serve_stdio(toolbox: Toolbox) -> None:
    try:
        make_server(toolbox).run("stdio")
    finally:
        toolbox.close()


def make_http_app(toolbox: Toolbox, access: Access) -> ASGIApp:
    """Return the server at `/mcp`, behind the rules of the API: host, origin, token."""
    server = make_server(toolbox, _find_principal)
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # Guard knows the hosts and origins
    return Guard(server.streamable_http_app(transport_security=unchecked), access)


def _find_principal(context: Context[Any, Any]) -> Principal | None:
    """Return the principal that the guard put into an HTTP request; None for a request that did not pass it."""
    request = context.request_context.request
    principal = getattr(getattr(request, "state", None), "principal", None)
    return principal if isinstance(principal, Principal) else None


def _wrap_tool(calls: Calls, name: str, tool: Callable[..., dict[str, Any]], caller_of: CallerOf) -> Callable[..., Any]:
    """Return the tool for the SDK: it knows the caller, a person confirms if the policy says so, errors become text."""

    async def answer(context: Context[Any, Any], **arguments: Any) -> Any:
        caller = caller_of(context)
        if caller is None:
            raise ToolError("This request has no sender.")
        try:
            answered: Answer | None = None
            if calls.decide(caller, name) is Decision.ASK:
                question = await anyio.to_thread.run_sync(partial(calls.make_question, caller, name, arguments))
                # an approval counts for no other caller, call or question
                text = json.dumps([caller.name, name, arguments, question], sort_keys=True, default=str)
                response = await _ask_person(context, question, hashlib.sha256(text.encode()).hexdigest())
                if isinstance(response, InputRequiredResult):
                    return response
                answered = response
            return await anyio.to_thread.run_sync(partial(calls.answer, caller, name, arguments, answered))
        except MergeplanError as error:
            place = f"{error.place}: " if error.place else ""
            raise ToolError(f"{place}{error.message} {error.hint}".strip()) from None

    tool_signature = inspect.signature(tool, eval_str=True)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    parameters = [parameter for parameter in tool_signature.parameters.values() if parameter.name != "caller"]
    answer.__signature__ = tool_signature.replace(parameters=[*parameters, context])  # type: ignore[attr-defined]
    answer.__annotations__ = {p.name: p.annotation for p in (*parameters, context)} | {"return": dict[str, Any]}
    return answer


async def _ask_person(context: Context[Any, Any], question: str, digest: str) -> Answer | InputRequiredResult:
    """Return a person's answer by the client; UNASKED if it cannot ask, InputRequiredResult if it is pending."""
    if not _can_ask(context.client_capabilities):
        return Answer.UNASKED
    if (context.protocol_version or "") < FIRST_WITH_INPUT:
        try:
            answer = await context.elicit(question, Approval)
        except ValueError:
            return Answer.DECLINED
        return Answer.APPROVED if answer.action == "accept" and answer.data.approve else Answer.DECLINED
    response = (context.input_responses or {}).get(KEY)
    if response is None or context.request_state != digest:
        schema = Approval.model_json_schema()
        request = ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=schema))
        return InputRequiredResult(input_requests={KEY: request}, request_state=digest)
    accepted = isinstance(response, ElicitResult) and response.action == "accept"
    content = response.content if isinstance(response, ElicitResult) else None
    return Answer.APPROVED if accepted and (content or {}).get("approve") is True else Answer.DECLINED


def _can_ask(capabilities: ClientCapabilities | None) -> bool:
    """Return True if the client shows forms; one that only opens addresses does not."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def open_toolbox(
    settings: SessionSettings,
    access: Access,
    environ: Mapping[str, str],
    *,
    policy: Path | None = None,
    passed: tuple[str, ...] = (),
) -> Toolbox:
    """Return the tools over a project, without a Spark in the server; `passed` are variables that jobs see too.

    Raise MergeplanError if the configuration of the project, or the file of the policy, cannot be read.
    """
    rules = read_policy(settings, policy)
    secrets = (*access.tokens.values(), settings.state_url, settings.openlineage_key)
    jobs = AgentJobs(settings, access, environ, passed)
    reading = Tools(replace(settings, open_engine=refuse_spark))
    return Toolbox(reading, JobTools(settings, jobs, rules), rules, AuditLog(settings.folder / "agents", secrets))
