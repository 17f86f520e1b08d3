"""The section `agents` of config.yaml, and of the operator's file: what agents may do, by principal."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator

from mergeplan.planner.data_field import describe
from mergeplan.planner.parsing.files.section import Section


class Decision(StrEnum):
    """The verdict on a call of a tool; each is stricter than those before it."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class ToolGroup(StrEnum):
    READ = "read"
    PLAN = "plan"
    CHECK = "check"
    APPLY = "apply"


TOOLS: Mapping[str, ToolGroup] = {
    **dict.fromkeys(
        "models model lineage environments history explain impact lint rollback audits tests job jobs".split(),
        ToolGroup.READ,
    ),
    **dict.fromkeys("make_plan cancel".split(), ToolGroup.PLAN),
    **dict.fromkeys("run_audits run_tests data_diff physical_plan".split(), ToolGroup.CHECK),
    "apply_plan": ToolGroup.APPLY,
}
NAMES = frozenset({*TOOLS, *ToolGroup})


class AgentRules(Section):
    """What an agent may do."""

    tools: dict[str, Literal["allow", "ask", "deny"]] = describe(
        {},
        "By tool, or by group (`read`, `plan`, `check`, `apply`): `allow`, `ask` or `deny`. A tool's own "
        "rule counts before that of its group.",
    )
    max_tables: int | None = Field(
        default=None, ge=0, description="How many tables a plan may compute at most that an agent applies."
    )

    @field_validator("tools")
    @classmethod
    def _check_names(cls, tools: dict[str, str]) -> dict[str, str]:
        for name in tools:
            if name not in NAMES:
                raise ValueError(f"`{name}` is neither a tool nor a group of tools")
        return tools


class AgentsConfig(AgentRules):
    """What agents may do, by principal."""

    principals: dict[str, AgentRules] = describe(
        {},
        "Rules of one principal, which count before the others: `local`, `token:read`, `token:plan` or `token:apply`.",
    )
