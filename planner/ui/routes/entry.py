"""Signing in, the files that pages load, and unknown addresses."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from mergeplan.planner.api.context import context_of
from mergeplan.planner.api.guard import COOKIE
from mergeplan.planner.api.problems import NotFound
from mergeplan.planner.ui.assets import assets_by_url
from mergeplan.planner.ui.render import render
from mergeplan.planner.ui.routes.answers import Form, PageRoute, frame_of, html_response, read_form, redirect_to

router = APIRouter(route_class=PageRoute)
last = APIRouter(route_class=PageRoute)
WRONG = "This is none of the tokens of this server."


@router.get("/assets/{name}")
def show_asset(request: Request, name: str) -> Response:
    """Send a style or a script; its address has its digest, so that a browser may store it."""
    asset = assets_by_url().get(f"/assets/{name}")
    if asset is None:
        raise NotFound(f"There is no file `{name}`.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(asset.content, headers=headers, media_type=asset.media_type)


@router.get("/login")
def show_login(request: Request, next: str = "/") -> Response:
    return html_response(render("login.html", frame_of(request), next=_own_path(next), error=""))


@router.post("/login")
def sign_in(request: Request, form: Annotated[Form, Depends(read_form)]) -> Response:
    """Store a token in a cookie that no script reads and no other site sends."""
    token, address = form.get("token", "").strip(), _own_path(form.get("next", ""))
    if context_of(request).access.principal(token) is None:
        return html_response(render("login.html", frame_of(request), next=address, error=WRONG), HTTPStatus.FORBIDDEN)
    answer = redirect_to(address)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@last.get("/{path:path}")
def show_nothing(path: str) -> Response:
    """Answer any other address with 404."""
    raise NotFound("There is nothing at this address.")


def _own_path(address: str) -> str:
    """Return a path of this server; the catalog for any other address."""
    plain = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if plain and "\\" not in address else "/"
