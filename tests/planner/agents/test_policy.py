"""The policy: the stricter of two files, a principal's rules first, and no file of the project widens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.agents.policy import LOCAL, MOST_TABLES, Policy, read_policy
from mergeplan.planner.api.access import Principal, Scope
from mergeplan.planner.errors import MergeplanError, ProjectError, RequestError
from mergeplan.planner.parsing.files.agent_rules import TOOLS, AgentsConfig, Decision
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.shop import FILES, write_shop

APPLIER = Principal("token:apply", Scope.APPLY)
READER = Principal("token:read", Scope.READ)


def rules(text: dict[str, object]) -> AgentsConfig:
    return AgentsConfig.model_validate(text)


def test_by_default_an_agent_reads_plans_and_checks_and_a_person_is_asked_to_apply() -> None:
    decisions = {name: Policy().decide(LOCAL, name) for name in TOOLS}

    assert {name for name, decision in decisions.items() if decision is not Decision.ALLOW} == {"apply_plan"}
    assert (decisions["apply_plan"], Policy().max_tables(LOCAL)) == (Decision.ASK, MOST_TABLES)


def test_a_token_has_no_more_than_its_scope_and_an_unknown_tool_is_denied() -> None:
    widest = Policy(rules({"tools": {"plan": "allow", "apply": "allow"}}))

    allowed = {name for name in TOOLS if widest.decide(READER, name) is Decision.ALLOW}
    assert allowed == {name for name, group in TOOLS.items() if group == "read"}
    assert widest.decide(LOCAL, "rollback_prod") is Decision.DENY


def test_a_principals_rule_counts_first_and_a_tools_before_its_groups() -> None:
    policy = Policy(
        rules({"tools": {"apply": "deny", "check": "ask", "run_tests": "allow"},
               "principals": {"token:apply": {"tools": {"apply_plan": "allow"}, "max_tables": 3}}})
    )  # fmt: skip

    assert policy.decide(APPLIER, "apply_plan") is Decision.ALLOW
    assert policy.decide(LOCAL, "apply_plan") is Decision.DENY
    assert [policy.decide(LOCAL, name) for name in ("run_tests", "data_diff")] == [Decision.ALLOW, Decision.ASK]
    assert (policy.max_tables(APPLIER), policy.max_tables(LOCAL)) == (3, MOST_TABLES)


def test_the_projects_file_narrows_and_never_widens(tmp_path: Path) -> None:
    section = "agents: {tools: {apply: allow, data_diff: deny}, max_tables: 1000}\n"
    write_shop(tmp_path, config=FILES["config.yaml"] + section)
    policy = read_policy(SessionSettings(tmp_path), None)

    assert policy.decide(LOCAL, "apply_plan") is Decision.ASK
    assert policy.decide(LOCAL, "data_diff") is Decision.DENY
    assert policy.max_tables(LOCAL) == MOST_TABLES


def test_the_operators_file_widens_and_both_count(tmp_path: Path) -> None:
    write_shop(tmp_path / "shop", config=FILES["config.yaml"] + "agents: {max_tables: 30}\n")
    own = tmp_path / "agents.yaml"
    own.write_text("tools: {apply: allow}\nmax_tables: 100\n")
    policy = read_policy(SessionSettings(tmp_path / "shop"), own)

    assert (policy.decide(LOCAL, "apply_plan"), policy.max_tables(LOCAL)) == (Decision.ALLOW, 30)


@pytest.mark.parametrize("place", ["agents.yaml", "shop/agents.yaml", "link.yaml"])
def test_a_file_in_the_projects_repository_is_no_operators(tmp_path: Path, place: str) -> None:
    write_shop(tmp_path / "repository/shop")
    (tmp_path / "repository/.git").mkdir()
    (tmp_path / "repository/agents.yaml").write_text("tools: {apply: allow}\n")
    (tmp_path / "repository/shop/agents.yaml").write_text("tools: {apply: allow}\n")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "repository/agents.yaml")
    file = tmp_path / place if place == "link.yaml" else tmp_path / "repository" / place

    with pytest.raises(RequestError, match="a pull request can change"):
        read_policy(SessionSettings(tmp_path / "repository/shop"), file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("tools: {aply: allow}", "neither a tool"), ("tools: {apply: perhaps}", "perhaps|allow"), ("tool: {}", "tool"),
     ("max_tables: -1", "0"), ("- apply", "mapping"), ("a: [", "YAML|flow|expected")],
)  # fmt: skip
def test_a_wrong_file_is_refused_at_its_line(tmp_path: Path, text: str, problem: str) -> None:
    write_shop(tmp_path / "shop")
    own = tmp_path / "agents.yaml"
    own.write_text(text)

    with pytest.raises(MergeplanError, match=f"(?i){problem}") as caught:
        read_policy(SessionSettings(tmp_path / "shop"), own)
    assert isinstance(caught.value, ProjectError) and caught.value.place and caught.value.place.line == 1


def test_a_wrong_section_of_the_project_stops_the_server(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "config.yaml").write_text(FILES["config.yaml"] + "agents: {tools: {everything: allow}}\n")

    with pytest.raises(ProjectError, match="neither a tool nor a group"):
        read_policy(SessionSettings(tmp_path), None)
