"""The service's pages: a signed link is checked before anything is looked up; then a page of what is known."""

import time
from collections.abc import Callable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mergeplan.bot.context import BotContext
from mergeplan.bot.pages.links import PAGES, end_of, links_of
from mergeplan.bot.pages.render import headers, render_page, render_refusal
from mergeplan.bot.pages.view import Decision, PageView
from mergeplan.bot.records import AFTER_MERGE, PullRecord
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.settings import redact_secrets
from mergeplan.planner.errors import MergeplanError

PATH = "/pulls/{owner}/{name}/{number:int}/{page}"
WRONG = "This link opens nothing", "Open the page from the check on the pull request: its link is signed for it."
EXPIRED = "This link has expired", "Re-run the check, or comment /plan: the new check's link opens this page again."


def page_handler(context: BotContext) -> Callable[[Request], Response]:
    links, secrets = links_of(context.settings), context.settings.secrets()
    hidden = (*secrets, *map(escape, secrets))

    def answer(request: Request) -> Response:
        where, key = request.path_params, request.query_params.get("key", "")
        repository, number = f"{where['owner']}/{where['name']}", int(where["number"])
        verdict = links.verdict(repository, number, key, time.time())
        if verdict != "open" or where["page"] not in PAGES:
            return _html_response(render_refusal(*(EXPIRED if verdict == "expired" else WRONG)), 403)
        try:
            view = _build_view(context, repository, number)
            is_read = bool(context.inbox.catalogs.mark(repository).mark)
        except MergeplanError:
            text = "The database does not answer. Load the page again in a while."
            return _html_response(render_refusal("Not now", text), 503)
        catalog = links.catalog_url(repository, end_of(key)) if is_read else ""
        return _html_response(redact_secrets(render_page(view, where["page"], key, catalog), hidden))

    return answer


def _build_view(context: BotContext, repository: str, number: int) -> PageView:
    inbox = context.inbox
    record = inbox.pulls.get(repository, number) if number else PullRecord(repository, 0)
    of_prod = not number or record.state in AFTER_MERGE  # a promotion is a run for prod
    return PageView(
        Shown(record, inbox.prods.get(repository)),
        inbox.progress.get(repository, 0 if of_prod else number),
        tuple(Decision(*decision) for decision in inbox.decisions.list_decisions(repository, number)) if number else (),
    )


def _html_response(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, headers=dict(headers()))
