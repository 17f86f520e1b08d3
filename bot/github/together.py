"""A comment and checks in one call: GraphQL's mutations, where REST takes a write for each. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from mergeplan.bot.forge.checks import CheckId, CheckRequest, CommentEdit, Written

Input = dict[str, Any]


def build_mutation(
    comment: CommentEdit | None, requests: Sequence[CheckRequest], outputs: Sequence[Input], repository: str
) -> tuple[str, Input]:
    """Return the document that writes all of them, and its variables.

    `outputs` are the checks' texts in REST's form, one each; `repository` is the repository's GraphQL id. GitHub runs
    the parts in their order, each by itself. The types are those of GitHub's published schema.
    """
    heads, parts, variables = list[str](), list[str](), dict[str, Any]()
    if comment:
        heads.append("$comment: UpdateIssueCommentInput!")
        parts.append("comment: updateIssueComment(input: $comment) { issueComment { updatedAt } }")
        variables["comment"] = {"id": comment.node, "body": comment.body}
    for index, (request, output) in enumerate(zip(requests, outputs, strict=True)):
        kind, name = "Update" if request.known.id else "Create", f"c{index}"
        heads.append(f"${name}: {kind}CheckRunInput!")
        parts.append(f"{name}: {kind.lower()}CheckRun(input: ${name}) {{ checkRun {{ id databaseId url }} }}")
        variables[name] = _check_input(request, output, repository)
    return f"mutation({', '.join(heads)}) {{ {' '.join(parts)} }}", variables


def parse_written(answer: Mapping[str, Any], *, comment: bool, checks: int) -> Written:
    """Return what the answer confirms as written; raise KeyError, TypeError or ValueError for another answer."""
    data = answer["data"]
    edited = datetime.fromisoformat(data["comment"]["issueComment"]["updatedAt"]) if comment else None
    runs = [data[f"c{index}"]["checkRun"] for index in range(checks)]
    check_ids = tuple(CheckId(int(run["databaseId"]), str(run["id"]), str(run["url"])) for run in runs)
    return Written(edited.astimezone(UTC).isoformat() if edited else "", check_ids)


def _check_input(request: CheckRequest, output: Input, repository: str) -> Input:
    view = request.view
    fields: Input = {"repositoryId": repository, "externalId": request.key, "status": view.status.upper()}
    fields["actions"] = [asdict(action) for action in view.actions]  # none take away those that it had
    if request.known.id:
        fields["checkRunId"] = request.known.node
    else:
        fields |= {"name": view.name, "headSha": request.sha}
    if request.details:
        fields["detailsUrl"] = request.details
    if view.is_completed:
        fields["conclusion"] = view.conclusion.upper()
    marks = [_format_annotation(annotation) for annotation in output.get("annotations", ())]
    fields["output"] = {**output, "annotations": marks} if marks else dict(output)
    return fields


def _format_annotation(mark: Input) -> Input:
    names = {"start_line": "startLine", "end_line": "endLine", "start_column": "startColumn", "end_column": "endColumn"}
    return {
        "path": mark["path"],
        "location": {name: mark[key] for key, name in names.items() if key in mark},
        "annotationLevel": mark["annotation_level"].upper(),
        "message": mark["message"],
    }
