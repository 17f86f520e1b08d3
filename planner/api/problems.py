"""Errors as problem details (RFC 9457): one sentence with the thing and what to do, never a trace."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException

from mergeplan.planner.contract.base import Data, Maybe
from mergeplan.planner.data_field import describe
from mergeplan.planner.errors import MergeplanError, ProjectError, ProjectErrors, QueryError, Refused

log = logging.getLogger(__name__)
RETRY_SECONDS = 2
MEDIA_TYPE = "application/problem+json"


class ProblemDetail(Data):
    """One of several things that are wrong."""

    message: str = Field(description="what is wrong")
    hint: str = describe("", "what to do about it")
    path: str = describe("", 'the file of the project, `""` where there is none')
    line: int = describe(0, "its line, or 0")
    at: str = describe("", 'the part of the request, such as `body.environment`, or `""`')


class Problem(Data):
    """Why a request was not answered."""

    type: str = describe("about:blank", "always `about:blank`: `title` and `kind` say which it is")
    title: str = Field(description="the status in words")
    status: int = Field(description="the status")
    detail: str = Field(description="what is wrong, and what to do about it")
    kind: str = describe("", "the error's kind as in [JSON lines](json.md), such as `PlanMoved`")
    retry: bool = describe(False, "the same request may succeed later")
    errors: Maybe[tuple[ProblemDetail, ...]] = describe(None, "each, where several are wrong")


class ApiError(MergeplanError):
    """An error that is answered with its own status."""

    def __init__(self, status: HTTPStatus, message: str, *, hint: str = "", retry: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry = retry


class NotFound(ApiError):
    """There is no such thing."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(HTTPStatus.NOT_FOUND, message, hint=hint)


class Conflict(ApiError):
    """It cannot be done as things are."""

    def __init__(self, message: str, *, hint: str = "", retry: bool = False) -> None:
        super().__init__(HTTPStatus.CONFLICT, message, hint=hint, retry=retry)


def problem_of(error: MergeplanError) -> Problem:
    """Return an expected error as a problem: 422 for a wrong request, 409 for what the state does not allow now."""
    status = error.status if isinstance(error, ApiError) else _error_status(error)
    several = error.errors if isinstance(error, ProjectErrors) else (error,)
    located = any(one.place for one in several)
    return Problem(
        title=status.phrase,
        status=status,
        detail=f"{error.message} {error.hint}".strip(),
        kind=type(error).__name__,
        retry=error.retry,
        errors=tuple(map(_problem_detail, several)) if located or len(several) > 1 else None,
    )


def answer_problem(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(problem.model_dump(mode="json"), problem.status, headers, media_type=MEDIA_TYPE)


def problem(status: HTTPStatus, detail: str) -> Problem:
    return Problem(title=status.phrase, status=status, detail=detail)


def handle_errors(app: FastAPI) -> None:
    app.add_exception_handler(MergeplanError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(Exception, _answer_defect)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def _error_status(error: MergeplanError) -> HTTPStatus:
    return HTTPStatus.CONFLICT if isinstance(error, (ProjectError, QueryError, Refused)) else _UNPROCESSABLE


_UNPROCESSABLE = HTTPStatus(422)  # its name differs between versions of Python


def _problem_detail(error: MergeplanError) -> ProblemDetail:
    place = error.place
    return ProblemDetail(
        message=error.message, hint=error.hint, path=place.path if place else "", line=place.line if place else 0
    )


async def _answer_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MergeplanError)
    answer = problem_of(error)
    later = answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    return answer_problem(answer, {"Retry-After": str(RETRY_SECONDS)} if later else None)


async def _answer_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    details = tuple(
        ProblemDetail(message=str(one["msg"]), at=".".join(str(part) for part in one.get("loc", ())))
        for one in error.errors()[:20]
    )
    first = f"`{details[0].at}`: {details[0].message.rstrip('.')}." if details else "The request is invalid."
    return answer_problem(problem(_UNPROCESSABLE, first).model_copy(update={"kind": "RequestError", "errors": details}))


async def _answer_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = "There is nothing at this address." if status is HTTPStatus.NOT_FOUND else f"{error.detail}."
    return answer_problem(problem(status, detail), dict(error.headers or {}))


async def _answer_defect(request: Request, error: Exception) -> JSONResponse:
    log.error("request failed: %s", request.url.path, exc_info=error)
    detail = f"Internal error in mergeplan: {type(error).__name__}. The server's log has more."
    return answer_problem(problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail))
