"""The catalog, models, lineage, environments and plans of a repository, read only, in the pages of `mergeplan ui`.

They are made of what the service has: the document that a planner child wrote after the last promotion, and the records
of pull requests. Who may see them is decided as for prod's own page: by a link that is signed for the repository, which
a cookie of the browser keeps from then on.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from http import HTTPStatus
from urllib.parse import urlsplit

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from mergeplan.bot.context import BotContext
from mergeplan.bot.pages.catalog import TABS, categories_of, environment_rows, plan_address, shown_plan
from mergeplan.bot.pages.links import end_of, links_of
from mergeplan.bot.pages.render import headers, render_refusal
from mergeplan.bot.records import PullRecord
from mergeplan.bot.service.known_catalogs import KnownCatalog, KnownCatalogs
from mergeplan.bot.service.pages import EXPIRED, WRONG
from mergeplan.bot.settings import redact_secrets
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.ui.assets import assets_by_url
from mergeplan.planner.ui.catalog_pages import ModelActivity, VersionRow
from mergeplan.planner.ui.job_pages import plan_page
from mergeplan.planner.ui.lineage_page import LineageQuery, lineage_page
from mergeplan.planner.ui.render import HEADERS, Frame, render

PREFIX = "/catalog/{owner}/{name}"
COOKIE = "mergeplan_pages"
WORDS_MOST = 500
MODEL_PLANS = 20
PULL = re.compile(r"[0-9]{1,9}")
UNREAD = "Nothing was read yet", "The catalog is read after the next promotion of prod. Load the page again in a while."
NOWHERE = "There is nothing at this address."
PRIVATE = ("SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY")  # in the name of a variable
SHORTEST = 8  # characters of what is hidden: a word that stands everywhere is no secret


class _Nowhere(Exception):
    """Nothing is at an address."""


def catalog_routes(context: BotContext) -> list[Route]:
    """Return the routes of the catalog's pages; without a public address each page refuses."""
    door = _Door(context)
    return [
        Route(PREFIX, door.answer, methods=["GET"], include_in_schema=False),
        Route(PREFIX + "/{path:path}", door.answer, methods=["GET"], include_in_schema=False),
    ]


class _Door:
    """Checks who asks, then hands on what is known."""

    def __init__(self, context: BotContext) -> None:
        self._links = links_of(context.settings)
        self._site = urlsplit(context.settings.public_url)
        secrets = (*context.settings.secrets(), *private_values(os.environ, context.settings.planner_environment))
        self._hidden = (*secrets, *map(escape, secrets))
        self._known = KnownCatalogs(context)

    def answer(self, request: Request) -> Response:
        where = request.path_params
        repository, path = f"{where['owner']}/{where['name']}", where.get("path", "")
        base = f"{self._site.path}/catalog/{repository}"
        if asset := assets_by_url().get(f"/{path}"):
            asset_headers = {
                "Cache-Control": "public, max-age=31536000, immutable",
                "X-Content-Type-Options": "nosniff",
            }
            return Response(asset.content, headers=asset_headers, media_type=asset.media_type)
        sent = request.query_params.get("key", "")
        key = sent or request.cookies.get(COOKIE, "")
        verdict = self._links.verdict(repository, 0, key, time.time())
        if verdict != "open":
            return HTMLResponse(render_refusal(*(EXPIRED if verdict == "expired" else WRONG)), 403, dict(headers()))
        if sent or not request.url.path.partition(f"/catalog/{repository}")[2]:
            return self._redirect_with_cookie(f"{base}/{path}", base, key)
        try:
            return self._render_page(repository, path, request.query_params, base)
        except MergeplanError:
            text = "The database does not answer. Load the page again in a while."
            return HTMLResponse(render_refusal("Not now", text), 503, dict(headers()))

    def _redirect_with_cookie(self, address: str, base: str, key: str) -> Response:
        """Redirect to the page without the key in its address; store the key in a cookie of this repository's pages."""
        answer = RedirectResponse(address, HTTPStatus.SEE_OTHER, dict(headers()))
        secure, seconds = self._site.scheme == "https", max(1, end_of(key) - int(time.time()))
        path = f"{base}/"
        # A page of GitHub leads here: with `strict` the browser would not send it.
        answer.set_cookie(COOKIE, key, seconds, path=path, secure=secure, httponly=True, samesite="lax")
        return answer

    def _render_page(self, repository: str, path: str, query: QueryParams, base: str) -> Response:
        known_catalog = self._known.get(repository)
        if known_catalog is None:
            return HTMLResponse(render_refusal(*UNREAD), 404, dict(headers()))
        frame = Frame(known_catalog.pages.catalog.project, tabs=TABS, base=base, notice=known_catalog.notice)
        page = _Page(self._known, known_catalog, repository, frame)
        status = HTTPStatus.OK
        try:
            text = page.render(path, query)
        except _Nowhere:
            text, status = page.error(NOWHERE), HTTPStatus.NOT_FOUND
        except ValidationError as error:
            text, status = page.error(f"{error.errors()[0]['msg']}."), HTTPStatus.UNPROCESSABLE_ENTITY
        shown = dict(HEADERS) | {"X-Robots-Tag": "noindex, nofollow"}
        return HTMLResponse(redact_secrets(text, self._hidden), status, shown)


class _Page:
    def __init__(self, plans: KnownCatalogs, known: KnownCatalog, repository: str, frame: Frame) -> None:
        self._plans, self._known, self._repository, self._frame = plans, known, repository, frame

    def render(self, path: str, query: QueryParams) -> str:
        """Return the page at an address; raise RequestError if there is none, ValidationError if the query is wrong."""
        first, _, subpath = path.partition("/")
        pages: Mapping[str, Callable[[QueryParams], str]] = {
            "": self._render_listing,
            "unused": lambda _: self._known.pages.list_unused(self._frame),
            "lineage": self._render_lineage,
            "environments": self._render_environments,
            "plans": self._render_plans,
        }
        if first == "models" and subpath in self._known.pages.catalog.models:
            return self._render_model(subpath)
        if first == "plans" and PULL.fullmatch(subpath):
            number = int(subpath)
            record = self._find_pull(str(number))
            shown = shown_plan(record, self._plans.progress(self._repository, number))
            return plan_page(self._known.pages.catalog, self._link_frame(), shown)
        if subpath or first not in pages:
            raise _Nowhere
        return pages[first](query)

    def error(self, message: str) -> str:
        values = {"title": "Not found", "message": message, "hint": "", "place": ""}
        return render("error.html", self._frame, **values)

    def _render_listing(self, query: QueryParams) -> str:
        number = query.get("page", "1")
        page = int(number) if number.isascii() and number.isdecimal() and len(number) < 6 else 1
        return self._known.pages.listing(self._frame, query.get("q", "")[:WORDS_MOST].strip(), max(1, page))

    def _render_model(self, name: str) -> str:
        model = self._known.pages.catalog.models[name]
        versions = (VersionRow(model.deployed.version, model.deployed.table, (PROD,)),) if model.deployed else ()
        plans = self._plans.list_plans(self._repository)
        rows = tuple(plan.row(self._frame.base) for plan in plans if name in plan.plan.models)[:MODEL_PLANS]
        frame, activity = self._link_frame(), ModelActivity(versions, plans=rows)
        return self._known.pages.model(frame, name, activity)

    def _render_lineage(self, query: QueryParams) -> str:
        values: dict[str, object] = {name: query[name] for name in query if name != "open"}
        lineage_query = LineageQuery.model_validate(values | {"open": tuple(query.getlist("open"))})
        categories: Mapping[str, str] = {}
        if lineage_query.plan:
            categories = categories_of(self._find_pull(lineage_query.plan))
        return lineage_page(self._known.pages, self._frame, lineage_query.wish(categories))

    def _render_environments(self, _: QueryParams) -> str:
        prod = self._plans.prod(self._repository)
        rows = environment_rows(self._known.pages.catalog, prod, self._plans.list_plans(self._repository))
        return render("environments.html", self._link_frame(), here="Environments", environments=rows)

    def _render_plans(self, _: QueryParams) -> str:
        rows = tuple(plan.row(self._frame.base) for plan in self._plans.list_plans(self._repository))
        catalog = self._known.pages.catalog
        return render("plans.html", self._link_frame(), here="Plans", plans=rows, jobs=(), catalog=catalog)

    def _find_pull(self, text: str) -> PullRecord:
        number = int(text) if PULL.fullmatch(text) else 0
        record = self._plans.pull(self._repository, number) if number else None
        if record is None or not record.head:
            raise _Nowhere
        return record

    def _link_frame(self) -> Frame:
        numbers = {
            plan.record.environment.name: plan.record.number for plan in self._plans.list_plans(self._repository)
        }
        base = self._frame.base
        pages = {name: plan_address(number, base) for name, number in numbers.items()}
        return replace(self._frame, environment_pages=pages)


def private_values(environ: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the values of variables whose names suggest a secret, since a query may have one filled in."""
    named = (name for name in names if any(word in name.upper() for word in PRIVATE))
    return tuple(value for name in named if len(value := environ.get(name, "")) >= SHORTEST)
