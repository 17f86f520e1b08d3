"""The bot's commands in one table: parser, permissions, /help and the documentation are made of it. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Role = Literal["none", "read", "triage", "write", "maintain", "admin"]
ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")


class Verb(StrEnum):
    PLAN = "plan"
    STATUS = "status"
    DIFF = "diff"
    LINEAGE = "lineage"
    CATEGORIZE = "categorize"
    RESTATE = "restate"
    SKIP_BACKFILL = "skip-backfill"
    BACKFILL = "backfill"
    APPROVE_COST = "approve-cost"
    ALLOW_DESTRUCTIVE = "allow-destructive"
    CANCEL = "cancel"
    ROLLBACK = "rollback"
    DEPLOY = "deploy"
    UNLOCK = "unlock"
    EXTEND = "extend"
    DESTROY = "destroy"
    OK_TO_PLAN = "ok-to-plan"
    HELP = "help"


class Takes(StrEnum):
    """What may stand after a command."""

    NOTHING = "nothing"
    ANYTHING = "anything"  # and none of it matters
    CATEGORY = "category"
    HEAD = "head"
    SELECTOR_AND_DAYS = "selector and days"
    NUMBER = "number"  # one, or none
    REVISION = "revision"  # a number, or none, and `--dry-run`
    MODEL = "model"  # one, with or without a column
    MODEL_AND_CONDITION = "model and condition"  # either, or none


@dataclass(frozen=True)
class Form:
    """How a command is written, what it does, an example, who may use it, and when it is rejected."""

    usage: str
    does: str
    example: str
    needs: Role
    rejected: str = ""
    takes: Takes = Takes.NOTHING


OTHER_PLAN = "the shown plan is of another head or another prod, or was shown only after the comment was written"
FORMS: Mapping[Verb, Form] = {
    Verb.PLAN: Form(
        "/plan",
        "plans again, against the current prod; after a merge that did not reach prod: tries the promotion again",
        "/plan",
        "write",
        "the pull request is closed, or in prod",
    ),
    Verb.STATUS: Form("/status", "shows where the pull request stands", "/status", "read"),
    Verb.DIFF: Form(
        "/diff [MODEL] [--where CONDITION]",
        "compares the rows of the changed models, or of one, with prod's; with a condition only the rows for which it "
        "holds",
        "/diff shop.orders --where amount > 100",
        "write",
        "no environment is built",
        Takes.MODEL_AND_CONDITION,
    ),
    Verb.LINEAGE: Form(
        "/lineage MODEL[.COLUMN]",
        "lists what is made from a model or one of its columns, as the pull request has it",
        "/lineage shop.orders.amount",
        "write",
        "no plan is shown",
        Takes.MODEL,
    ),
    Verb.CATEGORIZE: Form(
        "/categorize [MODEL] CATEGORY",
        "overrides the category of a directly modified model, with `--all` in its place of all of them: `breaking` "
        "(models downstream are recomputed), `non-breaking` (they keep their tables) or `forward-only` (all keep their "
        "rows; new days come of the new query). It holds across pushes while that model's text stays the same; "
        "`reset` takes it back. The last part of a name is enough if it is unique",
        "/categorize shop.orders non-breaking",
        "write",
        OTHER_PLAN,
        Takes.CATEGORY,
    ),
    Verb.RESTATE: Form(
        "/restate SELECTOR [--start DAY] [--end DAY]",
        "computes [rows of the environment's own tables again](restatement.md#in-other-environments), of these models "
        "and what is downstream, within the budget; prod's tables are never touched",
        "/restate shop.orders --start 2026-01-01 --end 2026-01-07",
        "write",
        "no environment is built",
        Takes.SELECTOR_AND_DAYS,
    ),
    Verb.SKIP_BACKFILL: Form(
        "/skip-backfill",
        "plans again and leaves new tables empty: the merge computes them",
        "/skip-backfill",
        "write",
        "the pull request is closed",
    ),
    Verb.BACKFILL: Form(
        "/backfill",
        "plans again and computes what `/skip-backfill`, or `skip_pr_backfill`, left empty",
        "/backfill",
        "write",
        "the pull request is closed",
    ),
    Verb.APPROVE_COST: Form(
        "/approve-cost",
        "lets the plan of this head compute what was estimated, though that is over the budget",
        "/approve-cost",
        "maintain",
        f"nothing waits for it; {OTHER_PLAN}",
    ),
    Verb.ALLOW_DESTRUCTIVE: Form(
        "/allow-destructive MODEL",
        "lets a forward-only change of a model drop columns, or change their types, in the plan of this head and at "
        "its merge",
        "/allow-destructive shop.orders",
        "maintain",
        OTHER_PLAN,
        Takes.MODEL,
    ),
    Verb.CANCEL: Form(
        "/cancel",
        "stops the running plan; the environment keeps what was computed",
        "/cancel",
        "write",
        "nothing is running",
    ),
    Verb.ROLLBACK: Form(
        "/rollback [REVISION] [--dry-run]",
        "after the merge: takes prod back to the revision before this pull request, or to the one that is named; what "
        "came to prod after that one goes too, and a pull request [reverts the merge](#rollback). With `--dry-run` it "
        "only says what that would do, and needs what `/diff` needs",
        "/rollback --dry-run",
        "maintain",
        "prod has changed since, and no revision is named; there is no such earlier revision; a table of it is gone",
        Takes.REVISION,
    ),
    Verb.DEPLOY: Form(
        "/deploy",
        "after a merge that the [rules](#who-decides) keep from prod: promotes it against them, which needs `admin`. "
        "Before the merge, where `enable_deploy_command` is on: [promotes, then merges](#deploy)",
        "/deploy",
        "maintain",
        f"it is off; something blocks the promotion; {OTHER_PLAN}",
    ),
    Verb.UNLOCK: Form(
        "/unlock",
        "stops this pull request's promotion where it hangs, so that others get their turn; prod stays whole, and "
        "`/plan` tries again",
        "/unlock",
        "maintain",
        "no promotion of it is running",
    ),
    Verb.EXTEND: Form(
        "/extend [DAYS]",
        "keeps the environment for so many days, 7 by default, though the pull request is merged or closed before",
        "/extend 14",
        "write",
        "there is no environment; more than 90 days",
        Takes.NUMBER,
    ),
    Verb.DESTROY: Form(
        "/destroy",
        "drops the environment and the tables that only it uses; of an open pull request `/plan` builds it again",
        "/destroy",
        "write",
        "there is no environment, or a promotion runs",
    ),
    Verb.OK_TO_PLAN: Form(
        "/ok-to-plan HEAD",
        "approves exactly that commit of a fork for planning; `HEAD` is its full SHA of 40 digits",
        "/ok-to-plan 4f2a9c10b7d3e8a65f1c2b4d9e0a7c3f8b6d5e21",
        "maintain",
        "the SHA is abbreviated, is not the head, or was shown only after the comment was written",
        Takes.HEAD,
    ),
    Verb.HELP: Form("/help", "lists the commands with permissions and examples", "/help", "read", "", Takes.ANYTHING),
}
DEFAULT_NEEDS: Mapping[str, Role] = {verb.value: form.needs for verb, form in FORMS.items()}
UNRULED = (Verb.HELP,)  # of which the project says nothing: it does nothing
