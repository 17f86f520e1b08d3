"""A stored webhook handled again: what the service would make of it, or the delivery itself sent to a service."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import requests

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.forge.events import GUID, Event, Ignored, InvalidDelivery
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.queue import queue_key
from mergeplan.bot.projects import project_keys, title_of
from mergeplan.bot.pulls.decide import Action, MakePlan, decide_action
from mergeplan.bot.pulls.stacks import build_stack_base, find_layers
from mergeplan.bot.report.offers import KEY
from mergeplan.bot.service.forges import open_forge
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import RequestError

SEND_SECONDS = 30


@dataclass(frozen=True)
class Stored:
    guid: str
    name: str
    payload: Mapping[str, Any]


def read_stored(path: Path, name: str, guid: str) -> Stored:
    """Read a file with a payload, or a delivery from GitHub's list of deliveries; raise RequestError for any other."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"`{path}` cannot be read as JSON: {error}.") from None
    if not isinstance(read, dict):
        raise RequestError(f"`{path}` holds no JSON object.", hint="It must be a webhook's payload.")
    request = read.get("request")
    if isinstance(request, dict) and isinstance(request.get("payload"), dict):
        name, guid = name or str(read.get("event", "")), guid or str(read.get("guid", ""))
        read = request["payload"]
    if not name:
        hint = "Name it as `X-GitHub-Event` did: `--event pull_request`."
        raise RequestError(f"`{path}` does not say which event it is.", hint=hint)
    guid = guid or f"replay-{uuid4()}"
    if not GUID.fullmatch(guid):
        raise RequestError("The delivery's id is no id.", hint="Name another with `--guid`.")
    return Stored(guid, name, read)


def rehearse_delivery(settings: Settings, delivery: Stored) -> tuple[list[str], bool]:
    """Return what a service with these settings would do, in sentences, and whether it would accept the delivery.

    Nothing is stored: the delivery is received in a transaction that is rolled back. GitHub is only read.
    """
    event = open_forge(settings).read_event(delivery.guid, delivery.name, delivery.payload)
    if isinstance(event, InvalidDelivery):
        return [f"Refused with {event.status}: {event.why}."], False
    if isinstance(event, Ignored):
        return [f"Ignored: {event.why}."], True
    lines = [f"{event.kind} of {_format_subject(event)}{f', head {event.head[:12]}' if event.head else ''}."]
    with _open_inbox(settings) as inbox:
        try:
            taken = inbox.deliveries.rehearse(event)
        except RequestError as error:
            return [*lines, f"Refused with 503: {error.message}"], False
        event = replace(event, repository=taken.repository)
        if not taken.fresh:
            return [*lines, f"The delivery {event.guid} is known already: nothing would be done."], True
        lines.append(f"It would make due: {', '.join(taken.keys) or 'nothing'}.")
        prod = inbox.prods.get(event.repository)
        lines += _describe_commands(event, prod.namespace)
        projects = project_keys(event.repository, settings.project_folders)
        due = [key for key in projects if queue_key(key, event.number) in taken.keys]
        lines += [_next_step(settings, inbox, replace(event, repository=key)) for key in due if event.number]
    return lines, True


def post_delivery(settings: Settings, delivery: Stored, url: str) -> tuple[str, bool]:
    """Post the delivery to a service, signed as GitHub signs it; return the answer and whether it was accepted."""
    if not settings.webhook_secret.get_secret_value():
        raise RequestError("MERGEPLAN_WEBHOOK_SECRET is not set.", hint="The service takes what is signed with it.")
    url = url or f"http://{'127.0.0.1' if settings.host in ('', '0.0.0.0') else settings.host}:{settings.port}/webhook"  # noqa: S104
    body = json.dumps(delivery.payload).encode()
    headers = dict(open_forge(settings).sign_delivery(delivery.guid, delivery.name, body))
    try:
        answer = requests.post(url, data=body, headers=headers, timeout=SEND_SECONDS, allow_redirects=False)
    except requests.RequestException as error:
        raise RequestError(f"{url} does not answer: {type(error).__name__}.", hint="Does the service run?") from None
    return f"{url} answered {answer.status_code}: {answer.text.strip()[:500]}", answer.ok


@contextmanager
def _open_inbox(settings: Settings) -> Iterator[Inbox]:
    """Yield the service's own records, or an empty temporary database if there are none yet."""
    with TemporaryDirectory() as folder:
        url = settings.database_url
        file = Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None
        if file is not None and not file.exists():
            url = f"sqlite:///{folder}/empty.db"
        inbox = Inbox(url, folders=settings.project_folders)
        try:
            yield inbox
        finally:
            inbox.close()


def _format_subject(event: Event) -> str:
    if event.owner:
        names = ", ".join(event.repositories)
        return f"the installation of {event.owner}{f' ({names})' if names else ''}"
    return f"{event.repository}#{event.number}" if event.number else f"{event.repository} {event.branch}".strip()


def _describe_commands(event: Event, namespace: str) -> list[str]:
    if event.pressed:
        by = f"by {event.pressed.author}, whose permission would be read then"
        named = (KEY.search(match) for match in event.pressed.press.keys)
        return [f"It presses `{match[0] if match else 'what is none of ours'}` {by}." for match in named]
    if not event.comment:
        return []
    who = f"by {event.comment.author}, whose permission would be read then"
    return [
        f"It holds the command `{command.text}` {who}."
        if isinstance(command, Command)
        else f"It would answer `{command.text}`: {command.cause}"
        for command in read_commands(event.comment.body, namespace)
    ]


def _next_step(settings: Settings, inbox: Inbox, event: Event) -> str:
    if not (settings.is_app or settings.github_token.get_secret_value()):
        return "The next step depends on the pull request: set the variables of the App, or a token, to read it."
    try:
        gateway = open_forge(settings, inbox.repositories.find).repository(event.repository)
        pull, prod = gateway.pull(event.number), inbox.prods.get(event.repository)
        branch = prod.branch or gateway.default_branch
        others = gateway.open_pulls() if pull.is_open and pull.base_ref != branch else ()
    except (ForgeFailed, ForgePaused) as error:
        return f"GitHub returned no pull request: {error}"
    record = inbox.pulls.get(event.repository, event.number)
    layers = find_layers(pull, others, branch)
    stack = build_stack_base(layers, partial(inbox.pulls.get, event.repository), prod.revision)
    pull = replace(pull, stack=stack)
    match decide_action(pull, record, prod, branch, time.time()):
        case MakePlan(reason):
            return f"Then {pull.head[:12]} would be planned. {reason}".strip()
        case Action.REST:
            return (
                f"Then nothing: {title_of(event.repository)}#{event.number} is {record.state.value}, as it should be."
            )
        case Action.LEAVE:
            return f"Then nothing: it merges into `{pull.base_ref}`, or is over, and was never planned."
        case Action.HOLD:
            return f"Then {pull.head[:12]}, which comes from a fork, would wait for `/ok-to-plan`."
        case Action.SKIP:
            return f"Then {pull.head[:12]} would not be planned: the pull request has the label {prod.skip_label}."
        case Action.WAIT_FOR_PROD:
            return "Then it would wait for prod's first build."
        case Action.WAIT_FOR_LAYER:
            return f"Then it would wait for the plan of #{pull.stack.waits_for}, the layer below."
        case Action.LEAVE_STACK:
            return f"Then its work would end: `{pull.base_ref}` does not lead to `{branch}` any more."
        case Action.DROP_ENVIRONMENT:
            return f"Then its environment {record.environment.name} would be dropped."
        case Action.HAND_TO_PROD:
            return f"Then its merge {pull.merge_sha[:12]} would be promoted to prod."
        case Action.OPEN_REVERT:
            return "Then a pull request that reverts its merge would be opened."
        case Action.CARRY_OVER:
            return "Then its plan would not change: prod has moved elsewhere."
        case Action.PLAN_GROUP:
            return "Then the merge queue's group would be planned."
        case Action.DROP_GROUP:
            return "Then the environment of the merge queue's group would be dropped."
        case Action.KEEP:
            return "Then its environment would be kept, by `/extend`."
        case Action.DESTROY:
            return "Then its environment would be dropped, by `/destroy`."
