"""`/restate`: computes rows of the environment's own tables again. Pure."""

import re
from dataclasses import replace
from datetime import date
from functools import partial

from mergeplan.bot.budgets import cost_limits
from mergeplan.bot.commands.command import RESET, SELECTOR, Command, Line, Mistake
from mergeplan.bot.commands.facts import require_environment, require_open
from mergeplan.bot.commands.form import Form, Request, Start, ask_planner, report_plan
from mergeplan.bot.pull_parts import NOT_RESTATED, RESTATED, PendingOverride
from mergeplan.bot.records import Answer, PullRecord, PullState
from mergeplan.bot.report.markdown import LIST_LIMIT, code, fit_lines, inert_text, name_list
from mergeplan.bot.report.words import work_words
from mergeplan.bot.results import PlannerOutcome
from mergeplan.bot.transitions.requests import add_override
from mergeplan.planner.contract.result import ResultLine

FLAGS = ("--copy", "--reset")


def _parse_line(line: Line) -> Command | Mistake:
    """Read a selector, then `--start`, `--end`, `--copy` and `--reset` in any order."""
    flags = [word for word in line.words[1:] if word in FLAGS]
    in_copy, resets = "--copy" in flags, "--reset" in flags
    words = line.words[:1] + [word for word in line.words[1:] if word not in FLAGS]
    if resets and (not in_copy or len(words) > 1):
        return line.mistake("`--reset` takes back a `--copy`: it is written with that, and without days.")
    parts = [part for word in words for part in word.split("=", 1)]
    if not parts or not SELECTOR.fullmatch(parts[0].lower()) or len(parts) % 2 == 0:
        return line.mistake("It takes models, and days after `--start` and `--end`.")
    options = dict(zip(parts[1::2], parts[2::2], strict=True))
    is_repeated = len(flags) > len(set(flags)) or len(options) * 2 != len(parts) - 1
    if options.keys() - {"--start", "--end"} or is_repeated:
        return line.mistake("Write `--start` and `--end` after the models, each once.")
    if wrong := next((day for day in options.values() if not _is_day(day)), ""):
        return line.mistake(f"{code(wrong)} is no day.")
    days = (options.get("--start", ""), options.get("--end", ""))
    if all(days) and days[0] > days[1]:
        return line.mistake(f"`{days[1]}` comes before `{days[0]}`.")
    return replace(line.command, model=parts[0].lower(), days=days, copy=in_copy, category=RESET if resets else "")


def _is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _start_command(request: Request) -> Start:
    command, record = request.command, request.record
    if command.copy:
        span = "..".join(command.days) if any(command.days) else ""
        wish = NOT_RESTATED if command.category else RESTATED
        override = PendingOverride(command.model, wish, request.who, request.pull.head, span)
        begins = f"The rows of {code(command.model)} are computed again, in tables that the merge promotes."
        sentence = f"{code(command.model)} is no longer restated." if command.category else begins
        wait = Start(sentence, waits_for="plan", category=command.category)
        return replace(wait, transition=partial(add_override, override=override))
    days = (f"{option}={day}" for option, day in zip(("--start", "--end"), command.days, strict=True) if day)
    models = f"--restate-model={command.model}"
    limits = cost_limits(record, request.budget)
    return ask_planner("plan", record.environment.name, "--auto-apply", models, *days, *limits)


def _format_reply(outcome: PlannerOutcome, result: ResultLine) -> str:
    plan = outcome.plan
    models = [model for model in plan.models if model.change == "restated"] if plan else []
    if plan is None or not models:
        return "Nothing had to be computed again."
    names = name_list([model.name for model in models])
    done = f"Computed again in {code(plan.environment)}: {names} ({work_words(plan)})."
    skipped_models = plan.restatement.left_out if plan.restatement else ()
    skip_lines = [f"- {code(skip.model)} stays as it is: {inert_text(skip.reason)}" for skip in skipped_models]
    return "\n".join([done, *fit_lines(skip_lines, LIST_LIMIT)])


def _finish_answer(answer: Answer, record: PullRecord) -> Answer:
    if record.state not in (PullState.PLANNED, PullState.PROMOTED):
        return report_plan(answer, record)
    plan = record.last_plan  # of a merge that came first, too
    names = [model.name for model in plan.models if model.rule == "restated"] if plan else []
    if answer.category == RESET:
        rest = f" Still restated: {name_list(names)}." if names else " Nothing is restated any more."
        return replace(answer, sentence=f"Taken back.{rest}")
    warnings = plan.warnings if plan else ()
    remarks = [f"- {inert_text(warning.message)}" for warning in warnings if " in a copy: " in warning.message]
    done = f"Restated in new tables: {name_list(names)}. The merge promotes them." if names else "Nothing is restated."
    return replace(answer, ok=bool(names), sentence="\n".join([done, *fit_lines(remarks, LIST_LIMIT)]))


RESTATE = Form(
    usage="/restate SELECTOR [--start DAY] [--end DAY] [--copy [--reset]]",
    does="computes [rows of the environment's own tables again](guides/restatement.md#in-other-environments), of "
    "these models and what is downstream, within the budget; prod's tables are never touched. With `--copy`: rows of "
    "unedited models, in [new tables that the merge promotes](guides/restatement.md#in-a-pull-request), and `--reset` "
    "takes that back",
    example="/restate shop.orders --start 2026-01-01 --end 2026-01-07",
    needs="write",
    rejected="no environment is built, or with `--copy` the pull request is closed",
    parse=_parse_line,
    rule=lambda command, facts: require_open(command, facts) if command.copy else require_environment(command, facts),
    start=_start_command,
    tree="merged",
    reply=_format_reply,
    finish=_finish_answer,
)
