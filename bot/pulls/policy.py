"""May this person do this now? Facts -> Allowed or Refused with the reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mergeplan.bot.commands import Command, role_for
from mergeplan.bot.verbs import ROLES, Role, Verb


@dataclass(frozen=True)
class Facts:
    """All that a decision rests on, gathered before it is made."""

    role: Role | None  # the live permission; None: it could not be read
    live_head: str
    shown_head: str  # the head that the comment shows, planned or held; '' when none is shown
    shown_since: datetime | None  # since when the comment shows that head, on that prod
    said_at: datetime
    shown_plan: str = ""
    is_open: bool = True
    is_fork: bool = False
    is_held: bool = False  # a fork's head that waits for a maintainer's word, or one that a label keeps without a plan
    is_running: bool = False
    waits_for_cost: bool = False  # the shown plan is over the budget
    is_held_merge: bool = False  # merged, and the rules do not let it into prod
    is_promoting: bool = False
    has_environment: bool = False
    is_built: bool = False  # its environment stands, as the shown plan says
    deploys: bool = False  # `/deploy` is on
    not_ready: str = ""  # what keeps the plan from prod, in a sentence
    promoted: bool = False
    promoted_revision: int = 0
    prod_revision: int = 0
    base_moved: bool = False
    other_projects: tuple[str, ...] = ()  # folders of the other projects that the pull request touches
    elsewhere: str = ""  # the prod branch, when this pull request goes into another one


DAYS_MOST = 90  # that /extend keeps an environment
DEPLOY_OFF = (
    "`/deploy` is off here: prod follows what people merge. Merge this pull request, and its tables are promoted. "
    "With `enable_deploy_command: true` in the base branch's `cicd_bot`, it promotes and then merges."
)


@dataclass(frozen=True)
class Allowed:
    """Go on."""


@dataclass(frozen=True)
class NotAllowed:
    """Nothing is changed; `why` is a sentence for the person who asked."""

    why: str


def decide(command: Command, facts: Facts, needs: Mapping[str, Role]) -> Allowed | NotAllowed:
    """Whether a command may run: first who asks, then whether what they saw is still so."""
    need = role_for(command, needs, held=facts.is_held_merge)
    if command.verb is Verb.HELP:
        return Allowed()
    if facts.elsewhere:
        return NotAllowed(
            f"This pull request does not merge into `{facts.elsewhere}`, so it changes nothing in prod and has no plan."
        )
    if command.verb is Verb.DEPLOY and not facts.is_held_merge and not facts.deploys:
        return NotAllowed(DEPLOY_OFF)
    if facts.role is None:
        return NotAllowed("Your permission could not be verified, so nothing was changed. Try again in a minute.")
    if ROLES.index(facts.role) < ROLES.index(need):
        return NotAllowed(
            f"This needs the `{need}` permission on this repository; you have `{facts.role}`. Nothing was changed."
        )
    return RULES[command.verb](command, facts)


def _plan(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if facts.is_fork and not facts.is_open:
        return NotAllowed("This pull request is closed.")
    return Allowed()


def _cancel(command: Command, facts: Facts) -> Allowed | NotAllowed:
    return Allowed() if facts.is_running else NotAllowed("Nothing is running.")


def _categorize(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if not facts.is_open:
        return NotAllowed("This pull request is closed: its plan can no longer be changed.")
    if facts.is_held or not facts.shown_head or facts.shown_since is None:
        return NotAllowed("No plan has been posted yet. Run the command again once it appears.")
    if facts.shown_head != facts.live_head:
        return NotAllowed(
            f"The plan shown is of `{facts.shown_head[:7]}`, but the head is now `{facts.live_head[:7]}`. "
            "Look at the new plan when it is shown, then say it again."
        )
    if facts.base_moved:
        return NotAllowed(
            "Prod has moved since that plan was made. Look at the new plan when it is shown, then say it again."
        )
    if facts.said_at < facts.shown_since:
        return NotAllowed("This command refers to an outdated plan. Review the current plan and run the command again.")
    return Allowed()


def _status(command: Command, facts: Facts) -> Allowed | NotAllowed:
    return Allowed()


def _backfill(command: Command, facts: Facts) -> Allowed | NotAllowed:
    return Allowed() if facts.is_open else NotAllowed("This pull request is closed.")


def _question(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if not facts.is_open:
        return NotAllowed("This pull request is closed.")
    if not facts.shown_plan or facts.is_held or facts.is_running:
        return NotAllowed("No plan stands yet. Wait for it, then ask again.")
    if command.verb in (Verb.DIFF, Verb.RESTATE) and not facts.is_built:
        return NotAllowed("No environment is built, so it has no rows.")
    return Allowed()


def _deploy(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if facts.is_held_merge:
        return Allowed()
    if facts.promoted or not facts.is_open:
        return NotAllowed("This pull request is not open: there is nothing to deploy.")
    if facts.other_projects:
        folders = ", ".join(f"`{folder}`" for folder in facts.other_projects)
        return NotAllowed(
            f"This pull request changes other projects too: {folders}. `/deploy` promotes one project before the "
            "merge, so it cannot. Merge the pull request, and each project promotes its own tables."
        )
    if (seen := _categorize(command, facts)) != Allowed():
        return seen
    if facts.is_running:
        return NotAllowed("The plan is not finished. Wait for it, then say it again.")
    if facts.not_ready:
        return NotAllowed(f"It is not ready for prod: {facts.not_ready} Nothing was changed.")
    return Allowed()


def _approve_cost(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if not facts.waits_for_cost:
        return NotAllowed("No plan waits for an approval of its cost.")
    return _categorize(command, facts)


def _rollback(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if not facts.promoted:
        return NotAllowed("This pull request is not in prod, so there is nothing to roll back.")
    if command.number:
        if command.number < facts.promoted_revision:
            return Allowed()
        return NotAllowed(f"This pull request became revision {facts.promoted_revision}: name an earlier one.")
    if facts.promoted_revision < 2:
        return NotAllowed("Prod has no earlier revision to go back to.")
    if facts.prod_revision != facts.promoted_revision:
        return NotAllowed(
            f"Prod has gone on to revision {facts.prod_revision} since this pull request became revision "
            f"{facts.promoted_revision}. Roll back what came later first, or name the revision: "
            f"`/rollback {facts.promoted_revision - 1}` takes back all that came after it."
        )
    return Allowed()


def _ok_to_plan(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if not facts.is_fork:
        return NotAllowed("This pull request does not come from a fork: no approval is needed.")
    if not facts.is_open:
        return NotAllowed("This pull request is closed.")
    look = f"Look at it, then type `/ok-to-plan {facts.live_head}`."
    if len(command.sha) != len(facts.live_head):
        return NotAllowed(
            f"A part of a commit's name can be forged: it takes all of it. The head is `{facts.live_head}`. {look}"
        )
    if command.sha != facts.live_head:
        return NotAllowed(f"The head is now `{facts.live_head}`. {look}")
    if facts.shown_head != facts.live_head or facts.shown_since is None or facts.said_at < facts.shown_since:
        return NotAllowed(f"You said it before this head was shown here. {look}")
    return Allowed()


def _unlock(command: Command, facts: Facts) -> Allowed | NotAllowed:
    return Allowed() if facts.is_promoting else NotAllowed("No promotion of this pull request is running.")


def _extend(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if not facts.has_environment:
        return NotAllowed("There is no environment to keep.")
    if command.number > DAYS_MOST:
        return NotAllowed(f"An environment is kept for {DAYS_MOST} days at most.")
    return Allowed()


def _destroy(command: Command, facts: Facts) -> Allowed | NotAllowed:
    if facts.is_promoting:
        return NotAllowed("Its promotion is running. Wait for it, then say it again.")
    return Allowed() if facts.has_environment else NotAllowed("There is no environment to drop.")


RULES = {
    Verb.RESTATE: _question,
    Verb.UNLOCK: _unlock,
    Verb.EXTEND: _extend,
    Verb.DESTROY: _destroy,
    Verb.PLAN: _plan,
    Verb.STATUS: _status,
    Verb.DIFF: _question,
    Verb.LINEAGE: _question,
    Verb.SKIP_BACKFILL: _backfill,
    Verb.BACKFILL: _backfill,
    Verb.ALLOW_DESTRUCTIVE: _categorize,
    Verb.APPROVE_COST: _approve_cost,
    Verb.DEPLOY: _deploy,
    Verb.CANCEL: _cancel,
    Verb.CATEGORIZE: _categorize,
    Verb.ROLLBACK: _rollback,
    Verb.OK_TO_PLAN: _ok_to_plan,
}
