"""The GitHub Action: the service's own routine, once, for the event that started the workflow."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from mergeplan.bot.child.isolated import confinement_words, isolation_words
from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.events import Delivery, Event, InvalidDelivery
from mergeplan.bot.projects import project_keys
from mergeplan.bot.records import ProdRecord, PullRecord, PullState, Repository
from mergeplan.bot.report.comment import job_summary
from mergeplan.bot.report.markdown import clip_text, inert_text
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.service.forges import open_forge
from mergeplan.bot.service.logs import start_logging
from mergeplan.bot.service.serve import build_context
from mergeplan.bot.service.worker import Worker
from mergeplan.bot.settings import ACTIONS_LOGIN, Settings, check_for_github, load_settings
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.system import hide_process

log = structlog.get_logger(__name__)
DRAIN_SECONDS = 6 * 3600.0


def run_action(environ: Mapping[str, str]) -> int:
    """Handle the workflow's event and return the exit code: 0 done, 1 plan or promotion failed, 2 misuse."""
    settings = check_for_github(action_settings(environ))
    hide_process()
    start_logging(settings)
    event = _load_event(environ, settings)
    if not isinstance(event, Event):
        log.info("event_ignored", why=event.why)
        return 2 if isinstance(event, InvalidDelivery) else 0
    log.info("isolation", code_of_projects=isolation_words(settings), spark=confinement_words(settings))
    ref = environ.get("GITHUB_REF", "")  # a pull request and a merge queue may run a version that nobody approved
    on_branch = ref.startswith("refs/heads/") and not ref.startswith("refs/heads/gh-readonly-queue/")
    context = build_context(settings, migrates=on_branch)
    try:
        worker = Worker(context)
        worker.recover()
        worker.retry(passing=True)
        # Of the runs that wait GitHub keeps the last: one of a label may stand in the place of one of a push.
        keys = context.note_repositories([Repository(event.repository, event.repository_id)])
        if not keys:
            raise RequestError(f"GitHub does not tell what became of the earlier repository `{event.repository}`.")
        context.inbox.deliveries.receive(replace(event, label=""))
        event = replace(event, repository=keys[0])
        projects = project_keys(keys[0], settings.project_folders)
        undone = worker.drain(projects, DRAIN_SECONDS)
        return _write_results(context, event, environ, undone)
    finally:
        context.closing.set()  # the thread that renews claims ends
        context.notifications.close()
        context.tracing.close()
        context.inbox.close()


def action_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of a workflow run, with its token and API unless MERGEPLAN_* variables override them."""
    overrides: dict[str, Any] = {"warm": False, "sweep_seconds": 20.0}
    if "MERGEPLAN_GITHUB_TOKEN" not in environ and environ.get("GITHUB_TOKEN"):
        overrides["github_token"] = environ["GITHUB_TOKEN"]
    if "MERGEPLAN_GITHUB_API_URL" not in environ and environ.get("GITHUB_API_URL"):
        overrides["github_api_url"] = environ["GITHUB_API_URL"]
    if "MERGEPLAN_GITHUB_APP_ID" not in environ:
        overrides["public_url"] = ""  # a job's token lasts for the job: no service opens a link that is signed with it
    if "MERGEPLAN_BOT_LOGIN" not in environ and "MERGEPLAN_GITHUB_APP_ID" not in environ:
        overrides["bot_login"] = ACTIONS_LOGIN
    return load_settings(overrides)


def _load_event(environ: Mapping[str, str], settings: Settings) -> Delivery:
    name, path = environ.get("GITHUB_EVENT_NAME", ""), environ.get("GITHUB_EVENT_PATH", "")
    if not name or not path:
        raise RequestError(
            "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set.", hint="Run `mergeplan action` in a workflow."
        )
    try:
        payload = json.loads(Path(path).read_text())
    except (OSError, ValueError):
        raise RequestError(
            "The event's file cannot be read.", hint="GITHUB_EVENT_PATH must name a JSON file."
        ) from None
    parts = (environ.get(f"GITHUB_{part}", "0") for part in ("RUN_ID", "RUN_ATTEMPT", "JOB"))
    guid = ":".join(("action", *parts))
    if name in ("workflow_dispatch", "schedule"):
        number = environ.get("GITHUB_REPOSITORY_ID", "")
        name = environ.get("GITHUB_REPOSITORY", "")
        return Event(guid, "push", name, repository_id=int(number) if number.isdecimal() else 0)
    name = "pull_request" if name == "pull_request_target" else name
    return open_forge(settings).read_event(guid[:120], name, payload)


def _write_results(context: BotContext, event: Event, environ: Mapping[str, str], undone: str) -> int:
    ends = []
    for key in project_keys(event.repository, context.settings.project_folders):
        record = context.inbox.pulls.get(key, event.number) if event.number else None
        ends.append(_End(record, context.inbox.prods.get(key)))
    shown_ends = [end for end in ends if end.plan] or ends[:1]  # one is enough to say that nothing changes
    failure = f"### mergeplan could not finish\n\n{inert_text(clip_text(undone))}\n" if undone else ""
    no_change = "No models change." if event.number else "Prod is where its branch is."
    plans = (end.plan or f"### mergeplan\n\n{no_change}\n" for end in shown_ends)
    text = "\n".join(filter(None, [failure, *plans]))
    if environ.get("GITHUB_STEP_SUMMARY"):
        with Path(environ["GITHUB_STEP_SUMMARY"]).open("a") as summary:
            summary.write(text)
    if undone:
        log.error("not_done", why=undone)
    code = 1 if undone or any(end.is_wrong for end in ends) else 0
    if environ.get("GITHUB_OUTPUT"):
        with Path(environ["GITHUB_OUTPUT"]).open("a") as outputs:
            outputs.writelines(
                f"{key}={value}\n" for key, value in outputs_of(shown_ends[0].record, shown_ends[0].prod, code).items()
            )
    return code


@dataclass(frozen=True)
class _End:
    """The state of one project of the repository at a run's end; its pull request is None for a push."""

    record: PullRecord | None
    prod: ProdRecord

    @property
    def plan(self) -> str:
        """Its plan for the job's summary; '' where there is none to show."""
        return job_summary(Shown(self.record, self.prod)) if self.record and self.record.head else ""

    @property
    def is_wrong(self) -> bool:
        """True when its plan or its promotion failed, or prod is behind its branch."""
        if self.record is not None:
            # A label turns no job to success.
            return self.record.state in {PullState.FAILED, PullState.UNPROMOTED, PullState.SKIPPED}
        built = self.prod.revision or self.prod.run_lines  # or else there is no such project
        behind = any(record.is_behind for record in self.prod.branches)
        return behind or (bool(built) and self.prod.promoted_commit != self.prod.commit)


def outputs_of(record: PullRecord | None, prod: ProdRecord, code: int) -> dict[str, str]:
    """Return the outputs for later steps of the workflow, none with text of a project; '' where there is no value."""
    plan = record.outcome.plan if record and record.outcome else None
    models = plan.models if plan else ()
    comment = f"{record.place.site}/pull/{record.number}#issuecomment-{record.comment.id}" if record else ""
    outputs = {
        "state": str(record.state) if record else ("promoted" if prod.promoted_commit == prod.commit else "unpromoted"),
        "plan-id": plan.id if plan else "",
        "environment": record.environment.name if record else "prod",
        "changed": str(len(models)),
        "computed": str(sum(bool(model.intervals) for model in models)),
        "comment-url": comment if record and record.comment.id else "",
        "prod-revision": str(prod.revision),
        "exit-code": str(code),
    }
    return {key: "".join(value.split()) for key, value in outputs.items()}
