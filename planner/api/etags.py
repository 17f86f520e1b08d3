"""Answers with an entity tag: a client that has the answer gets 304, and it is not made."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from mergeplan.planner.fingerprint import digest

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "As `If-None-Match` has it"}}


def answer_with_etag(request: Request, made_from: str, make: Callable[[], BaseModel]) -> Response:
    """Return the answer as JSON, or 304 if the request names the tag of what it would be made from."""
    tag = f'W/"{digest(made_from, str(request.url.path), str(request.url.query))[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in [part.strip() for part in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(make().model_dump_json(by_alias=True), headers=headers, media_type="application/json")
