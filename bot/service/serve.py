"""The service: the app, the worker and the warm Sparks in one process, from start to an orderly end."""

import os
import signal
import threading
from types import FrameType

import structlog
import uvicorn

from mergeplan.bot.child.isolated import CONFINED, confinement_words, isolation_words
from mergeplan.bot.child.planner_process import open_standby
from mergeplan.bot.child.warm import Warmth
from mergeplan.bot.context import BotContext
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.notifications.targets import open_notifications
from mergeplan.bot.prod.other_catalogs import load_other_catalogs
from mergeplan.bot.projects import keep_their_prods
from mergeplan.bot.service.app import create_app
from mergeplan.bot.service.connections import listen, server_config
from mergeplan.bot.service.forges import open_forge
from mergeplan.bot.service.logs import start_logging
from mergeplan.bot.service.worker import Worker
from mergeplan.bot.settings import Settings, check_for_service
from mergeplan.bot.tracing import open_tracing
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.mode import REQUIRED
from mergeplan.planner.isolation.processes import this_process
from mergeplan.planner.isolation.system import hide_process
from mergeplan.planner.state.database import open_upgraded

log = structlog.get_logger(__name__)


def build_context(settings: Settings, *, migrates: bool = True) -> BotContext:
    """Return the tools of this process; open and upgrade the databases, but do not call GitHub yet.

    Raise RequestError if the configured folders would give one project the prod of another.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    inbox = Inbox(
        settings.database_url,
        settle_seconds=settings.settle_seconds,
        folders=settings.project_folders,
        migrates=migrates,
    )
    try:
        if migrates and (url := settings.state_url.get_secret_value()):
            open_upgraded(url, "mergeplan.planner.state", migrates=True).dispose()
        keep_their_prods(
            {record.repository: record.folder for record in inbox.prods.list_promoted()}, settings.project_folders
        )
    except RequestError:
        inbox.close()
        raise
    notifications = open_notifications(settings)
    context = BotContext(
        settings, inbox, open_forge(settings, inbox.repositories.find), this_process(), notifications=notifications
    )
    context.tracing = open_tracing(os.environ)
    return context


class Server(uvicorn.Server):
    """An HTTP server that tells the workers at once when it ends, because its open requests may take seconds."""

    def __init__(self, config: uvicorn.Config, context: BotContext) -> None:
        super().__init__(config)
        self._context = context

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._context.closing.set()
        super().handle_exit(sig, frame)


def _end_in_order(context: BotContext) -> None:
    """Make SIGTERM and SIGINT only set `closing`; uvicorn raises the signal again after it has stopped listening."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: context.closing.set())


def run_service(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then hand jobs back and end children without loss."""
    check_for_service(settings)
    load_other_catalogs(settings.other_catalogs)
    hide_process()
    start_logging(settings)
    door = listen(settings.host, settings.port)  # before any work: a second service on this port does none
    context = build_context(settings)
    worker = Worker(context)
    worker.recover()
    warmth = Warmth(settings, context.inbox, context.worker) if settings.warm else None
    if warmth:
        context.before_plan = warmth.ensure
        for repository in context.inbox.queue.repositories():
            if context.inbox.prods.get(repository).revision:  # or else there may be no such project
                warmth.ensure(repository)
    context.standby = open_standby(settings)
    if context.standby:
        context.standby.prepare()
    config = server_config(create_app(context), settings.host, settings.port)
    _end_in_order(context)
    worker.start()
    isolated = isolation_words(settings)
    confined = confinement_words(settings)
    is_whole = (isolated, confined) == (REQUIRED, CONFINED)
    (log.info if is_whole else log.warning)("isolation", code_of_projects=isolated, spark=confined)
    log.info("service_started", host=settings.host, port=settings.port, home=str(settings.home))
    try:
        Server(config, context).run([door])
    finally:
        worker.stop()
        if context.standby:
            context.standby.close()
        if warmth:
            warmth.stop()
        context.notifications.close()
        context.tracing.close()
        context.inbox.close()
        log.info("service_ended")
