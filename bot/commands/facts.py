"""What decides whether a command may run now, and the rules that several commands share. Pure.

A rule returns why the command may not run, as a sentence for the person who gave it, or '' when it may.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mergeplan.bot.commands.command import Command
from mergeplan.bot.policy.roles import Role

CLOSED = "This pull request is closed."
NO_PLAN = "This pull request changes no models, so it needs no plan."
OUTDATED = "This command refers to an outdated plan. Review the current plan and run the command again."


@dataclass(frozen=True)
class Facts:
    """All that a decision rests on, gathered before it is made."""

    role: Role | None  # the live permission; None: it could not be read
    live_head: str
    shown_head: str  # the head that the comment shows, planned or held; '' when none is shown
    shown_since: datetime | None  # since when the comment shows that head, on that prod
    said_at: datetime
    plan_since: datetime | None = None  # since when it shows the plan that is stored now; None while it does not
    shown_plan: str = ""
    is_open: bool = True
    is_fork: bool = False
    is_held: bool = False  # a fork's head that waits for a maintainer's word, or one that a label keeps without a plan
    is_running: bool = False
    changes_nothing: bool = False  # the head was planned, and changes no model
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
    below: int = 0  # the pull request into whose branch this one goes, in a stack


Rule = Callable[[Command, Facts], str]


def allow_always(command: Command, facts: Facts) -> str:
    return ""


def require_open(command: Command, facts: Facts) -> str:
    return "" if facts.is_open else CLOSED


def require_shown_plan(command: Command, facts: Facts) -> str:
    """Return why the command must wait, unless its author saw the plan of this head on prod as it is."""
    if not facts.is_open:
        return "This pull request is closed: its plan can no longer be changed."
    if facts.is_held or not facts.shown_head or facts.shown_since is None:
        if facts.changes_nothing:
            return NO_PLAN
        return "No plan has been posted yet. Run the command again once it appears."
    if facts.shown_head != facts.live_head:
        return (
            f"The plan shown is of `{facts.shown_head[:7]}`, but the head is now `{facts.live_head[:7]}`. "
            "Look at the new plan when it is shown, then run the command again."
        )
    if facts.base_moved:
        return "Prod has moved since that plan was made. Look at the new plan, then run the command again."
    if facts.said_at < facts.shown_since:
        return OUTDATED
    return ""


def require_seen_plan(command: Command, facts: Facts) -> str:
    """Return why the command must wait, unless its author saw this plan: Spark can correct an earlier one."""
    if refusal := require_shown_plan(command, facts):
        return refusal
    return "" if facts.plan_since and facts.said_at >= facts.plan_since else OUTDATED


def require_plan(command: Command, facts: Facts) -> str:
    if not facts.is_open:
        return CLOSED
    if not facts.shown_plan or facts.is_held or facts.is_running:
        if facts.changes_nothing:
            return NO_PLAN
        return "There is no plan yet. Wait for it, then run the command again."
    return ""


def require_environment(command: Command, facts: Facts) -> str:
    return require_plan(command, facts) or ("" if facts.is_built else "No environment is built, so it has no rows.")
