"""The permissions of an agent: the operator's rules, which the project's config.yaml can only narrow."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mergeplan.planner.api.access import Principal, Scope
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.agent_rules import TOOLS, AgentRules, AgentsConfig, Decision, ToolGroup
from mergeplan.planner.parsing.files.config import read_config, validate_section
from mergeplan.planner.parsing.files.configuration import read_source
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from mergeplan.planner.project.configuration_files import read_configuration
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.session.settings import SessionSettings

DEFAULT: Mapping[ToolGroup, Decision] = {**dict.fromkeys(ToolGroup, Decision.ALLOW), ToolGroup.APPLY: Decision.ASK}
MOST_TABLES = 20  # that a plan applied by an agent may compute, unless the operator sets another limit
SCOPES: Mapping[ToolGroup, Scope] = {
    ToolGroup.READ: Scope.READ,
    ToolGroup.PLAN: Scope.PLAN,
    ToolGroup.CHECK: Scope.PLAN,
    ToolGroup.APPLY: Scope.APPLY,
}
LOCAL = Principal("local", Scope.APPLY)  # the user who starts the server on standard input and output


@dataclass(frozen=True)
class Policy:
    """The rules of one server, as they were when it started."""

    operator: AgentsConfig = field(default_factory=AgentsConfig)
    project: AgentsConfig = field(default_factory=AgentsConfig)

    def decide(self, principal: Principal, tool: str) -> Decision:
        """Return the stricter decision of both files; DENY for a tool beyond the token's scope or unknown."""
        group = TOOLS.get(tool)
        if group is None or not principal.scope.includes(SCOPES[group]):
            return Decision.DENY
        operator = find_decision(self.operator, principal, tool, group) or DEFAULT[group]
        project = find_decision(self.project, principal, tool, group) or Decision.ALLOW
        return max(operator, project, key=list(Decision).index)

    def max_tables(self, principal: Principal) -> int:
        operator, project = find_limit(self.operator, principal), find_limit(self.project, principal)
        table_limit = MOST_TABLES if operator is None else operator
        return table_limit if project is None else min(table_limit, project)


def find_decision(rules: AgentsConfig, principal: Principal, tool: str, group: ToolGroup) -> Decision | None:
    """Return the decision of one file, or None: the principal's before that of all, a tool's before its group's."""
    for part in _list_rules(rules, principal):
        for name in (tool, str(group)):
            if name in part.tools:
                return Decision(part.tools[name])
    return None


def find_limit(rules: AgentsConfig, principal: Principal) -> int | None:
    return next((part.max_tables for part in _list_rules(rules, principal) if part.max_tables is not None), None)


def read_policy(settings: SessionSettings, operator: Path | None) -> Policy:
    """Return the rules of the operator and of the project; raise MergeplanError for an unusable file."""
    reading = Folder(settings.root.resolve(), Cache(None))
    config = read_config(read_source(read_configuration(reading, settings.isolation), os.environ))
    operator_rules = AgentsConfig() if operator is None else read_operator_rules(operator, settings.root)
    return Policy(operator_rules, config.agents)


def read_operator_rules(path: Path, root: Path) -> AgentsConfig:
    """Return the rules of a file outside of the project's repository; raise RequestError for one inside."""
    if path.resolve().is_relative_to(_find_repository(root.resolve())):
        raise RequestError(
            f"`{path}` is a file of the project's repository, which a pull request can change.",
            hint="Keep the file of `--policy` elsewhere.",
        )
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise RequestError(f"`{path}` cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise RequestError(f"`{path}` is not UTF-8 text.") from None
    document = read_document(str(path), text)
    return validate_section(AgentsConfig, document, document.value or {})


def _list_rules(rules: AgentsConfig, principal: Principal) -> tuple[AgentRules, ...]:
    principal_rules = rules.principals.get(principal.name)
    return (principal_rules, rules) if principal_rules else (rules,)


def _find_repository(root: Path) -> Path:
    """Return the outermost folder above a project that is a git work tree; the project's own if there is none."""
    return next((folder for folder in reversed((root, *root.parents)) if os.path.lexists(folder / ".git")), root)
