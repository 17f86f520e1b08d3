"""A call of a tool: decided by the policy, written to the audit log, answered."""

import inspect
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from mergeplan.planner.agents.audit_log import AuditEntry, AuditLog
from mergeplan.planner.agents.job_tools import JobTools
from mergeplan.planner.agents.policy import SCOPES, Policy
from mergeplan.planner.agents.tools import Tools
from mergeplan.planner.api.access import Principal
from mergeplan.planner.errors import MergeplanError, Refused
from mergeplan.planner.parsing.files.agent_rules import TOOLS, Decision, ToolGroup

Json = dict[str, Any]
Tool = Callable[..., Json]


class Answer(StrEnum):
    """The outcome of a question to a person."""

    APPROVED = "approved"
    DECLINED = "declined"
    UNASKED = "unasked"


@dataclass(frozen=True)
class Toolbox:
    """The tools of one server over one project, its policy, and its audit log."""

    reading: Tools
    working: JobTools
    policy: Policy
    log: AuditLog

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        reading, working = self.reading, self.working
        named = {"jobs": working.jobs_list}
        tools = {name: named.get(name) or getattr(reading, name, None) or getattr(working, name) for name in TOOLS}
        return {name: tool for name, tool in tools.items() if callable(tool)}

    def close(self) -> None:
        self.working.jobs.close()


class Calls:
    """The answers to calls; calls that open the project are answered one after another."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox, self._turn = toolbox, threading.Lock()

    def decide(self, caller: Principal, name: str) -> Decision:
        return self._toolbox.policy.decide(caller, name)

    def make_question(self, caller: Principal, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the question to a person; raise an error if the call would be refused anyhow."""
        if TOOLS[name] is not ToolGroup.APPLY:
            shown = json.dumps(dict(arguments), default=str)
            return f"Let the agent call `{name}` with {shown[:500]}?"
        try:
            return self._toolbox.working.check_apply(caller, arguments["plan_id"]).question
        except MergeplanError as error:
            self._log_call(caller, name, arguments, str(Decision.ASK), _error_outcome(error))
            raise

    def answer(self, caller: Principal, name: str, arguments: Mapping[str, Any], answer: Answer | None) -> Json:
        """Return the tool's answer; raise MergeplanError if it fails, Refused if the call is not allowed."""
        decision = self.decide(caller, name)
        decided = str(answer or decision)
        if refusal := _find_refusal(caller, name, decision, answer):
            self._log_call(caller, name, arguments, decided, _error_outcome(refusal))
            raise refusal
        starts = TOOLS[name] is not ToolGroup.READ
        if starts:
            self._log_call(caller, name, arguments, decided, "begun")  # what cannot be logged is not done
        try:
            data = self._call_tool(caller, name, arguments)
        except MergeplanError as error:
            self._log_call(caller, name, arguments, decided, _error_outcome(error))
            raise
        except BaseException as error:
            self._log_call(caller, name, arguments, decided, f"failed: {type(error).__name__}")
            raise
        self._log_call(caller, name, arguments, decided, "done", str(data.get("id", "")) if starts else "")
        return data

    def _call_tool(self, caller: Principal, name: str, arguments: Mapping[str, Any]) -> Json:
        tool = self._toolbox.tools[name]
        if "caller" in inspect.signature(tool).parameters:
            return tool(caller, **arguments)
        with self._turn:
            return tool(**arguments)

    def _log_call(
        self, caller: Principal, name: str, arguments: Mapping[str, Any], decision: str, outcome: str, job: str = ""
    ) -> None:
        self._toolbox.log.write(AuditEntry(caller.name, name, arguments, decision, outcome, job))


def _find_refusal(caller: Principal, name: str, decision: Decision, answer: Answer | None) -> Refused | None:
    if decision is Decision.ALLOW or (decision is Decision.ASK and answer is Answer.APPROVED):
        return None
    needed = SCOPES[TOOLS[name]]
    if not caller.scope.includes(needed):
        return Refused(f"`{name}` needs a token of the scope `{needed}`.")
    if decision is Decision.DENY:
        return Refused(f"The policy does not let `{caller.name}` call `{name}`.", hint="Ask the operator.")
    if answer is Answer.DECLINED:
        return Refused(f"A person did not approve `{name}`.")
    return Refused(
        f"`{name}` needs the approval of a person, and this client cannot ask one (elicitation).",
        hint="Use a client that can, or let the operator allow it in the file of `--policy`.",
    )


def _error_outcome(error: MergeplanError) -> str:
    kind = "refused" if isinstance(error, Refused) else "failed"
    return f"{kind}: {error.message}"
