"""Answers of the pages: HTML with its headers, redirects, errors as a page, and forms of this server."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope as AsgiScope

from mergeplan.planner.api.access import Mode, Scope
from mergeplan.planner.api.context import context_of, principal_of
from mergeplan.planner.api.first_reading import StillReading
from mergeplan.planner.api.problems import RETRY_SECONDS, ApiError, problem_of
from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import MergeplanError, RequestError
from mergeplan.planner.ui.catalog_pages import CHOICES_MAX
from mergeplan.planner.ui.render import CATALOG_TABS, HEADERS, TABS, Frame, render
from mergeplan.planner.ui.state import UiState

log = logging.getLogger(__name__)
FIELDS_MOST = 2_000  # of a form
BodyT = TypeVar("BodyT", bound=BaseModel)
Form = Mapping[str, str]


class PageRoute(APIRoute):
    """A route whose errors are pages; it leaves every address of the API to the API."""

    def matches(self, scope: AsgiScope) -> tuple[Match, AsgiScope]:
        if str(scope.get("path", "")).startswith("/api/"):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except StillReading as error:
                return reading_page(request, error)
            except MergeplanError as error:
                return error_page(request, error)
            except RequestValidationError as error:
                return error_page(request, RequestError(_error_sentence(error.errors())))
            except HTTPException as error:
                return error_page(request, ApiError(HTTPStatus(error.status_code), f"{error.detail}."))
            except Exception as error:
                log.exception("request failed: %s", request.url.path)
                message = f"Internal error in mergeplan: {type(error).__name__}. The server's log has more."
                return error_page(request, ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, message))

        return answer


def ui_of(request: Request) -> UiState:
    state = request.state.ui
    assert isinstance(state, UiState)
    return state


Ui = Annotated[UiState, Depends(ui_of)]


def is_allowed(request: Request, scope: Scope, mode: Mode | None = None) -> bool:
    return context_of(request).allows(principal_of(request), scope, mode)


def check_scope(request: Request, scope: Scope, mode: Mode | None = None) -> str:
    """Return the name of the sender of the request; raise ApiError (403) if the scope is not allowed."""
    principal = principal_of(request)
    context_of(request).check(principal, scope, mode)
    assert principal is not None
    return principal.name


def frame_of(request: Request) -> Frame:
    principal, reads_jobs = principal_of(request), is_allowed(request, Scope.READ, Mode.PLAN)
    return Frame(
        context_of(request).reader.project_name if principal else "",
        ui_of(request).csrf(principal.name) if principal else "",
        may_plan=is_allowed(request, Scope.PLAN),
        may_apply=is_allowed(request, Scope.APPLY),
        may_read_jobs=reads_jobs,
        tabs=TABS if reads_jobs else CATALOG_TABS,
    )


def form_choices(request: Request) -> Mapping[str, tuple[str, ...]]:
    """Return the names that forms offer: none while the project cannot be read."""
    try:
        snapshot = context_of(request).reader.read_for_page(with_queries=False)
    except MergeplanError:
        return {"model_names": (), "environment_names": (), "test_names": ()}
    return {
        "model_names": tuple(snapshot.models)[:CHOICES_MAX],
        "environment_names": tuple(environment.name for environment in snapshot.environments),
        "test_names": tuple(test.name for test in snapshot.project.tests)[:CHOICES_MAX],
    }


def read_catalog(request: Request) -> Catalog:
    """Return the catalog of prod, whose queries may not have been read."""
    return ui_of(request).pages(context_of(request).reader.read_for_page(with_queries=False)).catalog


def form_page(request: Request, template: str, here: str, values: dict[str, str], error: str = "") -> HTMLResponse:
    choices = form_choices(request)
    return html_response(render(template, frame_of(request), here=here, values=values, error=error, **choices))


def html_response(text: str, status: HTTPStatus = HTTPStatus.OK) -> HTMLResponse:
    return HTMLResponse(text, status, dict(HEADERS))


def redirect_to(address: str) -> RedirectResponse:
    return RedirectResponse(address, HTTPStatus.SEE_OTHER, dict(HEADERS))


def error_page(request: Request, error: MergeplanError) -> HTMLResponse:
    """Return an error as a page with a sentence, and with the status that the API gives it."""
    status = HTTPStatus(problem_of(error).status)
    values = {"title": status.phrase, "message": error.message, "hint": error.hint, "place": str(error.place or "")}
    return html_response(render("error.html", frame_of(request), **values), status)


def reading_page(request: Request, error: StillReading) -> HTMLResponse:
    """Return the progress of the first reading of the project; the page reloads until there is a catalog."""
    values = {"progress": error.progress, "refresh": RETRY_SECONDS}
    page = html_response(render("reading.html", frame_of(request), **values), HTTPStatus.SERVICE_UNAVAILABLE)
    page.headers["Retry-After"] = str(RETRY_SECONDS)
    return page


async def read_form(request: Request) -> Form:
    """Return a form's fields; raise ApiError (415) for another content type, RequestError for an unreadable one."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise ApiError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "This address takes the form of its page.")
    try:
        text = (await request.body()).decode("utf-8")
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MOST, errors="strict"))
    except ValueError:
        raise RequestError("The form cannot be read.", hint="Load its page again.") from None
    return fields


async def read_own_form(request: Request) -> Form:
    """Return the fields of a form with its token; raise ApiError (403) without the token."""
    fields = await read_form(request)
    principal = principal_of(request)
    if principal is None or not ui_of(request).is_csrf(principal.name, fields.get("csrf", "")):
        message = "The form is not one of this server, which may have been started again since."
        raise ApiError(HTTPStatus.FORBIDDEN, message, hint="Load its page again, and send it once more.")
    return fields


OwnForm = Annotated[Form, Depends(read_own_form)]


def make_body(kind: type[BodyT], **values: object) -> BodyT:
    """Return a body of the API from a form, without empty fields; raise RequestError if it is invalid."""
    try:
        return kind.model_validate({name: value for name, value in values.items() if value not in ("", (), None)})
    except ValidationError as error:
        raise RequestError(_error_sentence(error.errors(include_url=False, include_input=False))) from None


def split_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def check_confirmed(form: Form) -> None:
    """Raise RequestError unless the box of a form that changes an environment is checked."""
    if form.get("sure") != "1":
        raise RequestError("The box above the button is not checked.", hint="Check it to confirm.")


def _error_sentence(errors: Any) -> str:
    first = errors[0]
    place = ".".join(str(part) for part in first.get("loc", ()) if part not in ("query", "path", "body"))
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"`{place}`: {message.rstrip('.')}." if place else f"{message.rstrip('.')}."
