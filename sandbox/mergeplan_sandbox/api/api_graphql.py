"""GraphQL: who edited a comment, comments and check runs written several at a time, reverts; REST has none of it."""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    build_schema,
    execute_sync,
    parse,
    validate,
)

from mergeplan_sandbox import check_runs, pulls, talk
from mergeplan_sandbox.access import COMMENT, OPEN_PULL, PUSH, READ, WRITE_CHECKS, Need, may_edit, require_repository
from mergeplan_sandbox.api import shapes
from mergeplan_sandbox.api.calls import Call, Router, route
from mergeplan_sandbox.api.limits import ApiError, not_found
from mergeplan_sandbox.state import CheckRun, Comment, Json, PullRequest, Repository

router = Router()
Info = GraphQLResolveInfo[Any]
SCHEMA = Path(__file__).parent / "schema.graphql"
KINDS = {401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND"}
NAMES = {
    "annotationLevel": "annotation_level",
    "completedAt": "completed_at",
    "detailsUrl": "details_url",
    "externalId": "external_id",
    "headSha": "head_sha",
    "rawDetails": "raw_details",
    "startedAt": "started_at",
    "startLine": "start_line",
    "startColumn": "start_column",
    "endLine": "end_line",
    "endColumn": "end_column",
}
ENUMS = ("status", "conclusion", "annotationLevel")


@route(router, "POST", "/graphql")
def execute_graphql(call: Call) -> Any:
    """Execute a document; as on GitHub, each refused part is an error beside the data of the others."""
    query, variables = call.body.get("query"), call.body.get("variables")
    if not isinstance(query, str) or not query:
        raise ApiError(400, "A query attribute must be specified and must be a string.")
    answer = _execute_query(query, Root(call), variables or {})
    errors = [_error_shape(error) for error in answer.errors or ()]
    return {"data": answer.data} | ({"errors": errors} if errors else {})


def _execute_query(query: str, root: "Root", variables: Json) -> ExecutionResult:
    document = _parse_document(query)
    if isinstance(document, list):
        return ExecutionResult(None, document)
    return execute_sync(_load_schema(), document, root, variable_values=variables)


@lru_cache(maxsize=100)
def _parse_document(query: str) -> DocumentNode | list[GraphQLError]:
    """Return a valid query, or the errors in it; clients send few texts, so each is parsed once."""
    try:
        document = parse(query)
    except GraphQLError as error:
        return [error]
    return validate(_load_schema(), document) or document


@cache
def _load_schema() -> GraphQLSchema:
    return build_schema(SCHEMA.read_text())


def _error_shape(error: GraphQLError) -> Json:
    """Return an error in GitHub's shape; only an error that the API refused has a type."""
    refused = error.original_error
    shape: Json = {"message": error.message, "path": error.path or []}
    if isinstance(refused, ApiError):
        shape["type"] = KINDS.get(refused.status, "UNPROCESSABLE")
        shape["message"] = "; ".join(detail["message"] for detail in refused.errors or ()) or refused.message
    return shape


class Root:
    """The resolvers of the schema's queries and mutations, for one caller."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def node(self, _: Info, id: str) -> Json:
        return _comment_node(self._find_comment(id, READ)[1])

    def repository(self, _: Info, owner: str, name: str, followRenames: bool) -> "RepositoryNode":
        return RepositoryNode(self, require_repository(self._call.state, self._call.caller, f"{owner}/{name}", READ))

    def updateIssueComment(self, _: Info, input: Json) -> Json:
        repo, item = self._find_comment(input["id"], COMMENT)
        caller = self._call.caller
        if not may_edit(self._call.state, repo, caller, item.author):
            raise ApiError(403, "Must have write access to this repository.")
        talk.edit_comment(self._call.site, repo, item, caller.login, {"body": input["body"]})
        return {"issueComment": _comment_node(item)}

    def createCheckRun(self, _: Info, input: Json) -> Json:
        repo = self._find_repository(input)
        return self._run_payload(
            repo, check_runs.create_run(self._call.site, repo, self._call.caller.login, _convert_to_rest(input))
        )

    def updateCheckRun(self, _: Info, input: Json) -> Json:
        repo = self._find_repository(input)
        run = next(
            (
                check_run
                for check_run in repo.checks.values()
                if shapes.node_id("CR", check_run.id) == input["checkRunId"]
            ),
            None,
        )
        if run is None:
            raise not_found()
        if run.author != self._call.caller.login:
            raise ApiError(403, "Invalid app_id: this check run was made by another App")
        check_runs.update_run(self._call.site, repo, run, self._call.caller.login, _convert_to_rest(input))
        return self._run_payload(repo, run)

    def revertPullRequest(self, _: Info, input: Json) -> Json:
        """Open a pull request that reverts a merged one; the caller must be able to push."""
        repo, pull = self._find_pull(input["pullRequestId"])
        for need in (PUSH, OPEN_PULL):
            require_repository(self._call.state, self._call.caller, repo.full_name, need)
        made = pulls.revert_pull(self._call.site, repo, pull, self._call.caller.login, input)
        return {"pullRequest": self.pull_node(repo, pull), "revertPullRequest": self.pull_node(repo, made)}

    def _find_pull(self, node: str) -> tuple[Repository, PullRequest]:
        for repo in self._call.state.repositories.values():
            for pull in repo.pulls:
                if shapes.node_id("PR", pull.id) == node:
                    return repo, pull
        raise ApiError(404, f"Could not resolve to a node with the global id of '{node}'")

    def pull_node(self, repo: Repository, pull: PullRequest) -> Json:
        page = f"{shapes.html_url(self._call.state, repo)}/pull/{pull.number}"
        shape = {"id": shapes.node_id("PR", pull.id), "number": pull.number, "title": pull.title, "url": page}
        sha = pull.merge_commit_sha if pull.merged_at else None
        merge = {"id": f"C_{sha}", "oid": sha} if sha else None
        return {"__typename": "PullRequest", **shape, "headRefName": pull.head_ref, "mergeCommit": merge}

    def _find_comment(self, node: str, need: Need) -> tuple[Repository, Comment]:
        state = self._call.state
        for repo in state.repositories.values():
            for item in repo.comments.values():
                if shapes.node_id("IC", item.id) == node:
                    return require_repository(state, self._call.caller, repo.full_name, need), item
        raise ApiError(404, f"Could not resolve to a node with the global id of '{node}'")

    def _find_repository(self, arguments: Json) -> Repository:
        state = self._call.state
        for repo in state.repositories.values():
            if shapes.node_id("R", repo.id) == arguments["repositoryId"]:
                return require_repository(state, self._call.caller, repo.full_name, WRITE_CHECKS)
        raise not_found()

    def _run_payload(self, repo: Repository, run: CheckRun) -> Json:
        page = f"{shapes.html_url(self._call.state, repo)}/runs/{run.id}"
        shape = {"id": shapes.node_id("CR", run.id), "databaseId": run.id, "name": run.name, "url": page}
        return {"checkRun": {"__typename": "CheckRun", **shape}}


class RepositoryNode:
    """The resolvers of a repository."""

    def __init__(self, root: Root, repo: Repository) -> None:
        self._root, self._repo = root, repo
        self.id = shapes.node_id("R", repo.id)

    def pullRequest(self, _: Info, number: int) -> Json:
        pull = self._repo.issues.get(number)
        if not isinstance(pull, PullRequest):
            raise ApiError(404, f"Could not resolve to a PullRequest with the number of {number}.")
        return self._root.pull_node(self._repo, pull)


def _comment_node(item: Comment) -> Json:
    login = item.editor.removesuffix("[bot]") if item.editor else ""
    kind = "Bot" if login != item.editor else "User"
    return {
        "__typename": "IssueComment",
        "id": shapes.node_id("IC", item.id),
        "databaseId": item.id,
        "updatedAt": shapes.format_time(item.updated_at),
        "lastEditedAt": shapes.format_time(item.edited_at) if item.edited_at else None,
        "editor": {"__typename": kind, "login": login} if login else None,
    }


def _convert_to_rest(value: Any) -> Any:
    """Return an input in REST's form.

    Names differ, enum values are in lower case, and an annotation's lines are beside its text.
    """
    if isinstance(value, list):
        return [_convert_to_rest(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    made = {
        NAMES.get(key, key): entry.lower() if key in ENUMS and entry else _convert_to_rest(entry)
        for key, entry in value.items()
    }
    return made | made.pop("location", {})
