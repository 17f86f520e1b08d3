"""GraphQL of the sandbox: it answers a part of GitHub's published schema, and refuses as GitHub does."""

from __future__ import annotations

from pathlib import Path

import pytest
from github import Github, GithubException
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    parse,
    validate,
)

from mergeplan.bot.forge.checks import CheckId, CheckRequest, CommentEdit
from mergeplan.bot.github.check_runs import build_mutation
from mergeplan.bot.github.gateway import REVERTING
from mergeplan.bot.github.merges import build_query
from mergeplan.bot.report.checks.check import CheckView
from mergeplan_sandbox.api.api_graphql import SCHEMA
from mergeplan_sandbox.server import Sandbox
from tests.npm import fetch_package

SHOP = "ann/shop"
PACKAGE = "@octokit/graphql-schema"
CREATE = "mutation($c: CreateCheckRunInput!) { createCheckRun(input: $c) { checkRun { id databaseId url } } }"


@pytest.fixture(name="github_schema")
def _github_schema(tmp_path: Path) -> GraphQLSchema:
    """GitHub's schema, as its own package of it has it."""
    return build_schema((fetch_package(PACKAGE, tmp_path) / "schema.graphql").read_text(), assume_valid=True)


def fields(kind: GraphQLNamedType | None) -> dict[str, str]:
    """The fields of a type, or the values of an enumeration, with their types."""
    if isinstance(kind, GraphQLEnumType):
        return dict.fromkeys(kind.values, "")
    return {name: str(field.type) for name, field in getattr(kind, "fields", {}).items()}


@pytest.mark.prove
def test_what_the_sandbox_answers_is_a_part_of_what_github_publishes(github_schema: GraphQLSchema) -> None:
    """Each field has the same type there; enumerations are whole, and no field that an input needs is missing."""
    ours = build_schema(SCHEMA.read_text())
    for name in ours.type_map:
        there = github_schema.type_map.get(name)
        assert fields(ours.type_map[name]).items() <= fields(there).items(), name
        if isinstance(there, GraphQLEnumType):
            assert fields(ours.type_map[name]) == fields(there), name
        if isinstance(there, GraphQLInputObjectType):
            needed = {field for field, kind in fields(there).items() if kind.endswith("!")}
            assert needed <= set(fields(ours.type_map[name])), name
        if isinstance(there, GraphQLObjectType) and name in ("Query", "Mutation"):
            for field in fields(ours.type_map[name]):
                mine = ours.type_map[name].fields[field].args  # type: ignore[attr-defined]
                assert {key: str(arg.type) for key, arg in mine.items()} == {
                    key: str(arg.type) for key, arg in there.fields[field].args.items()
                }


@pytest.mark.prove
def test_what_the_bot_sends_is_valid_by_githubs_schema(github_schema: GraphQLSchema) -> None:
    view = CheckView("plan", "Title", "Summary")
    new, known = (
        CheckRequest("a" * 40, view, "key", check_id) for check_id in (CheckId(), CheckId(1, "CR_1", "http://x"))
    )
    document, variables = build_mutation(CommentEdit("IC_1", "Text"), [new, known], [{}, {}], "R_1")

    assert set(variables) == {"comment", "c0", "c1"}
    assert validate(github_schema, parse(document)) == []
    assert validate(github_schema, parse(REVERTING)) == []
    assert validate(github_schema, parse(build_query([1, 2]))) == []


def check(sandbox: Sandbox, **more: object) -> dict[str, object]:
    """What a check on the default branch is asked for with."""
    repo = sandbox.state.repositories[SHOP]
    head = sandbox.head(SHOP, repo.default_branch)
    return {"repositoryId": f"R_{repo.id}", "headSha": head, "name": "plan", "status": "IN_PROGRESS", **more}


def test_a_check_is_made_and_webhooks_tell_of_it(sandbox: Sandbox, bot: Github) -> None:
    _, answer = bot.requester.graphql_query(CREATE, {"c": check(sandbox, conclusion="SUCCESS", status="COMPLETED")})
    made = answer["data"]["createCheckRun"]["checkRun"]
    run = bot.withLazy(True).get_repo(SHOP).get_commit(sandbox.head(SHOP)).get_check_runs()[0]
    sandbox.wait_idle()

    assert (run.conclusion, run.node_id, run.html_url) == ("success", made["id"], made["url"])
    assert [delivery.event for delivery in sandbox.state.deliveries if delivery.event == "check_run"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"status": "DONE"}, "DONE"),
        ({"headSha": "0" * 40}, "No commit found"),
        ({"output": {"title": "No summary"}}, "summary"),
        ({"repositoryId": "R_0"}, "Not Found"),
        ({"status": "COMPLETED"}, "conclusion is required"),
    ],
)
def test_what_github_would_refuse_is_refused(sandbox: Sandbox, bot: Github, more: dict[str, object], says: str) -> None:
    before = len(sandbox.state.repositories[SHOP].checks)
    with pytest.raises(GithubException) as refused:
        bot.requester.graphql_query(CREATE, {"c": check(sandbox, **more)})

    assert says in str(refused.value)
    assert len(sandbox.state.repositories[SHOP].checks) == before
