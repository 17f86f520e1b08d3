"""GitHub's limits as numbers, and its refusals in its own shape."""

import re
from typing import Any, Literal

from mergeplan_sandbox.state import Json

COMMENT_BODY = 65_536
CHECK_TEXT = 65_535
CHECK_NAME = 255
TITLE = 256
ANNOTATIONS_PER_REQUEST = 50
ANNOTATION_MESSAGE_BYTES = 64 * 1024
ANNOTATION_TITLE = 255
ACTIONS = 3
ACTION_FIELDS = {"label": 20, "description": 40, "identifier": 20}
LABEL_NAME = 50
STATUS_DESCRIPTION = 140
PER_PAGE, PER_PAGE_MOST = 30, 100
WEBHOOK_TIMEOUT_SECONDS = 10.0
JWT_LIFETIME_SECONDS = 600
TOKEN_LIFETIME_SECONDS = 3600
REQUESTS_PER_HOUR = 5000

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
CHECK_STATUSES = ("queued", "in_progress", "completed")
CHECK_CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out")
ANNOTATION_LEVELS = ("notice", "warning", "failure")
DEPLOYMENT_STATES = ("error", "failure", "inactive", "in_progress", "queued", "pending", "success")

ErrorCode = Literal["missing", "missing_field", "invalid", "already_exists", "custom"]


class ApiError(Exception):
    """A refusal: its status, GitHub's message, and for 422 which field of which resource is wrong."""

    def __init__(self, status: int, message: str, errors: list[Json] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors

    def body(self, base_url: str) -> Json:
        body: Json = {
            "message": self.message,
            "documentation_url": f"{base_url}/_sandbox",
            "status": str(self.status),
        }
        return body | ({"errors": self.errors} if self.errors is not None else {})


def not_found() -> ApiError:
    """Return the answer for a missing thing and for one that the caller may not see; both look alike."""
    return ApiError(404, "Not Found")


def field_error(resource: str, field: str, message: str, code: ErrorCode = "custom") -> ApiError:
    error = {"resource": resource, "code": code, "field": field, "message": message}
    return ApiError(422, "Validation Failed", [error])


def require_text(resource: str, body: Json, field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value.strip():
        raise field_error(resource, field, f"{field} can't be blank", "missing_field")
    return value


def check_length(resource: str, field: str, value: str | None, limit: int) -> None:
    if value is not None and len(value) > limit:
        raise field_error(resource, field, f"{field} is too long (maximum is {limit} characters)")


def one_of(resource: str, field: str, value: Any, allowed_words: tuple[str, ...]) -> None:
    if value not in allowed_words:
        raise field_error(resource, field, f"{field} must be one of: {', '.join(allowed_words)}", "invalid")


def check_comment(body: Json) -> str:
    """Return the text of a comment, which must not be blank or longer than 65,536 characters."""
    text = require_text("IssueComment", body, "body")
    check_length("IssueComment", "body", text, COMMENT_BODY)
    return text


def check_issue(resource: str, body: Json) -> None:
    """Refuse a title of more than 256 characters or a body longer than a comment may be."""
    check_length(resource, "title", body.get("title"), TITLE)
    check_length(resource, "body", body.get("body"), COMMENT_BODY)


def check_run_fields(body: Json) -> None:
    check_length("CheckRun", "name", body.get("name"), CHECK_NAME)
    if body.get("status") is not None:
        one_of("CheckRun", "status", body["status"], CHECK_STATUSES)
    if body.get("conclusion") is not None:
        one_of("CheckRun", "conclusion", body["conclusion"], CHECK_CONCLUSIONS)
    elif body.get("status") == "completed":
        raise field_error("CheckRun", "conclusion", "conclusion is required when status is completed", "missing_field")
    if body.get("output") is not None:
        output = body["output"]
        require_text("CheckRun", output, "summary")
        for field in ("summary", "text"):
            check_length("CheckRun", field, output.get(field), CHECK_TEXT)
        annotations = output.get("annotations") or []
        if len(annotations) > ANNOTATIONS_PER_REQUEST:
            raise field_error(
                "CheckRun", "annotations", f"no more than {ANNOTATIONS_PER_REQUEST} items per request are allowed"
            )
        for annotation in annotations:
            _check_annotation(annotation)
    _check_actions(body.get("actions") or [])


def _check_annotation(annotation: Json) -> None:
    where = "CheckRunAnnotation"
    path = require_text(where, annotation, "path")
    message = require_text(where, annotation, "message")
    one_of(where, "annotation_level", annotation.get("annotation_level"), ANNOTATION_LEVELS)
    check_length(where, "title", annotation.get("title"), ANNOTATION_TITLE)
    if path.startswith("/"):
        raise field_error(where, "path", "path must be relative to the repository's root", "invalid")
    for field in ("message", "raw_details"):
        if len((annotation.get(field) or "").encode()) > ANNOTATION_MESSAGE_BYTES:
            raise field_error(where, field, f"{field} is too long (maximum is 64 KB)")
    start, end = annotation.get("start_line"), annotation.get("end_line")
    if not isinstance(start, int) or not isinstance(end, int) or not 1 <= start <= end or not message:
        raise field_error(where, "start_line", "start_line and end_line must be lines of the file, in order", "invalid")
    columns = [annotation.get("start_column"), annotation.get("end_column")]
    if start != end and any(column is not None for column in columns):
        raise field_error(where, "start_column", "columns are only allowed on one-line annotations", "invalid")


def _check_actions(actions: list[Json]) -> None:
    if len(actions) > ACTIONS:
        raise field_error("CheckRun", "actions", f"no more than {ACTIONS} items are allowed")
    for action in actions:
        for field, limit in ACTION_FIELDS.items():
            check_length("CheckRun", field, require_text("CheckRun", action, field), limit)


def check_sha(resource: str, field: str, sha: str) -> None:
    """Refuse a SHA that is not 40 hex digits."""
    if not re.fullmatch(r"[0-9a-f]{40}", sha):
        raise field_error(resource, field, f"{field} is not a commit SHA", "invalid")
