"""The form of a command: all that the bot knows of it, as data and pure functions. Pure.

A command starts with a transition of the records and its first answer (`Start`); `pulls/talk` applies it. So a command
needs no file of its own among the acting stages: the jobs of the pull request and of prod do what their records ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mergeplan.bot.budgets import Budget, DiffRules
from mergeplan.bot.commands.command import Command, Line, Mistake, parse_nothing
from mergeplan.bot.commands.facts import Facts, Rule, allow_always
from mergeplan.bot.policy.roles import Role
from mergeplan.bot.records import Answer, ProdRecord, Pull, PullRecord, PullState
from mergeplan.bot.results import PlannerOutcome
from mergeplan.bot.transitions.planning import Transition
from mergeplan.planner.contract.result import ResultLine

OTHER_PLAN = "the shown plan is of another head or another prod, or was shown only after the comment was written"
UNFINISHED = frozenset({PullState.NEW, PullState.PLANNING, PullState.WAITING})
QUESTION = "answer"  # what an answer waits for when the planner has to be asked
# What the planner reads for a question: prod's commit as it is now, for what is no matter of the pull request; prod's
# commit where there is a plan, and no code of the pull request runs; the head merged into the commit of its plan.
Tree = Literal["prod", "before", "merged"]


@dataclass(frozen=True)
class Request:
    command: Command
    who: str
    record: PullRecord
    prod: ProdRecord
    pull: Pull
    now: float  # seconds of the epoch
    needs: Mapping[str, Role]
    budget: Budget
    diff: DiffRules
    forms: tuple[Form, ...]  # every command, for /help


@dataclass(frozen=True)
class Start:
    """What a command does at once: what changes in the records, and its answer until what it waits for has ended."""

    sentence: str
    ok: bool = True
    transition: Transition | None = None  # of the pull request's record
    prod_transition: Callable[[ProdRecord], ProdRecord] | None = None
    wakes_prod: bool = False
    waits_for: str = ""  # as `Answer` has it; so are the next three
    model: str = ""
    category: str = ""
    asked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Face:
    """How a command looks on a check: its button's label, and what it does, in short."""

    label: str
    does: str


@dataclass(frozen=True)
class Choice:
    """A command that makes sense now, as it is typed without a namespace, what it does, and its face if it has one."""

    command: str
    does: str
    face: Face | None = None
    moves_prod: bool = False  # it is written, or pressed on the page of its check: a box is ticked too easily


def never_off(facts: Facts) -> str:
    return ""


def own_role(command: Command, needs: Mapping[str, Role], is_held: bool) -> Role:
    return needs.get(command.verb, "admin")


def is_planning(record: PullRecord) -> bool:
    """Return True while a plan is made, or is to be made."""
    return not record.is_settled or record.wishes.again or bool(record.wishes.overrides)


def report_plan(answer: Answer, record: PullRecord) -> Answer:
    ok = record.state in (PullState.PLANNED, PullState.PROMOTED)
    return replace(answer, ok=ok, sentence="Planned." if ok else "The plan did not succeed.")


def reply_done(outcome: PlannerOutcome, result: ResultLine) -> str:
    return "Done."


def offer_nothing(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    return ()


@dataclass(frozen=True)
class Form:
    """A command.

    `needs` is the role that it takes by default. `start` is called when it may run; when its `Start` waits for
    something, `waits` says for how long, and `finish` makes the answer of what came of it.
    """

    usage: str
    does: str  # Markdown of the documentation; in /help without its links
    example: str
    needs: Role
    start: Callable[[Request], Start]
    rejected: str = ""  # when it is, for the documentation
    parse: Callable[[Line], Command | Mistake] = parse_nothing
    rule: Rule = allow_always
    waits: Callable[[PullRecord], bool] = is_planning
    finish: Callable[[Answer, PullRecord], Answer] = report_plan
    tree: Tree = "merged"  # of a command that the planner answers, as is the next one
    reply: Callable[[PlannerOutcome, ResultLine], str] = reply_done
    offers: Callable[[PullRecord, ProdRecord], tuple[Choice, ...]] = offer_nothing
    # Of few commands:
    anybody: bool = False  # it takes no role and no plan, the project has no say in it, one of several projects answers
    alone: bool = False  # it is of one project: which others the pull request touches is looked up before
    off: Callable[[Facts], str] = never_off  # why it is off here, whoever asks
    role: Callable[[Command, Mapping[str, Role], bool], Role] = own_role  # True for a merge that the rules hold

    @property
    def verb(self) -> str:
        return self.usage.split()[0].removeprefix("/")


def ask_planner(*arguments: str) -> Start:
    return Start("The planner works on it.", waits_for=QUESTION, asked=arguments)
