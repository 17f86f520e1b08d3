"""`/rollback`: takes prod back to an earlier revision; `prod/actions/rollbacks` does it. Pure."""

from dataclasses import replace
from functools import partial

from mergeplan.bot.commands.command import NUMBER, Command, Line, Mistake
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.form import Choice, Face, Form, Request, Start, ask_planner, own_role
from mergeplan.bot.records import Answer, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.markdown import inert_text
from mergeplan.bot.report.reverts import revert_words
from mergeplan.bot.report.rollback import rollback_words
from mergeplan.bot.transitions.requests import request_rollback
from mergeplan.planner.snapshot.environment import PROD

DRY_RUN = "--dry-run"


def _parse_line(line: Line) -> Command | Mistake:
    """Read a revision, or none, with `--dry-run` before or after it; any other word undoes nothing."""
    words = line.words
    dry_run, arguments = DRY_RUN in words, [word for word in words if word != DRY_RUN]
    if len(words) - len(arguments) > 1 or len(arguments) > 1 or not all(NUMBER.fullmatch(word) for word in arguments):
        return line.mistake("It takes the number of a revision, or nothing, and `--dry-run`.")
    return replace(line.command, number=int(arguments[0]) if arguments else 0, dry_run=dry_run)


def _refusal_reason(command: Command, facts: Facts) -> str:
    if not facts.promoted:
        return "This pull request is not in prod, so there is nothing to roll back."
    if command.number:
        if command.number < facts.promoted_revision:
            return ""
        return f"This pull request became revision {facts.promoted_revision}: name an earlier one."
    if facts.promoted_revision < 2:
        return "Prod has no earlier revision to go back to."
    if facts.prod_revision != facts.promoted_revision:
        return (
            f"Prod has moved on to revision {facts.prod_revision} since this pull request became revision "
            f"{facts.promoted_revision}. Roll back the later revisions first, or name the revision: "
            f"`/rollback {facts.promoted_revision - 1}` takes back everything after it."
        )
    return ""


def _start_command(request: Request) -> Start:
    command = request.command
    if command.dry_run:
        revision = command.number or request.record.promotion.revision - 1
        return ask_planner("rollback", PROD, "--to", str(revision), DRY_RUN)
    roll_back = partial(request_rollback, who=request.who, revision=command.number)
    return Start("Prod is being rolled back.", transition=roll_back, wakes_prod=True, waits_for="rollback")


def _finish_answer(answer: Answer, record: PullRecord) -> Answer:
    ok = record.state is PullState.ROLLED_BACK
    reason = inert_text(record.reason)
    done = f"{reason} {revert_words(record)}" if ok else f"Prod was not changed. {reason}".strip()
    return replace(answer, ok=ok, sentence=done)


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    if record.state is not PullState.PROMOTED or record.promotion.revision < 2:
        return ()
    face = Face("Roll back", "Prod as it was before")
    return (
        Choice("/rollback --dry-run", "says what that would show, and changes nothing"),
        Choice("/rollback", "points prod back at the tables it had before", face, moves_prod=True),
    )


ROLLBACK = Form(
    usage="/rollback [REVISION] [--dry-run]",
    does="after the merge: takes prod back to the revision before this pull request, or to the named one. Later "
    "promotions go, too, and a pull request [reverts the merge](guides/rollback.md). "
    "With `--dry-run` it only shows the effect, and needs the permission of `/diff`",
    example="/rollback --dry-run",
    needs="maintain",
    rejected="prod has changed since, and no revision is named; there is no such earlier revision; a table of it is "
    "gone",
    parse=_parse_line,
    role=lambda command, needs, is_held: (
        needs.get("diff", "admin") if command.dry_run else own_role(command, needs, is_held)
    ),
    rule=_refusal_reason,
    start=_start_command,
    waits=lambda record: bool(record.rollback.by) or record.rollback.reversal.to_open,
    finish=_finish_answer,
    tree="prod",
    reply=lambda outcome, _: (
        rollback_words(outcome.rollback) if outcome.rollback else "The result of that rollback is not known."
    ),
    offers=_list_choices,
)
