"""`/restate`: computes rows of the environment's own tables again. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

from mergeplan.bot.budgets import cost_limits
from mergeplan.bot.commands.command import SELECTOR, Command, Line, Mistake
from mergeplan.bot.commands.facts import require_environment
from mergeplan.bot.commands.form import Form, Request, Start, ask_planner
from mergeplan.bot.report.markdown import LIST_LIMIT, code, fit_lines, inert_text, name_list
from mergeplan.bot.report.words import work_words
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.result import ResultLine


def _parse_line(line: Line) -> Command | Mistake:
    """Read a selector, then `--start` and `--end` in any order."""
    parts = [part for word in line.words for part in word.split("=", 1)]
    if not parts or not SELECTOR.fullmatch(parts[0].lower()) or len(parts) % 2 == 0:
        return line.mistake("It takes models, and days after `--start` and `--end`.")
    options = dict(zip(parts[1::2], parts[2::2], strict=True))
    if options.keys() - {"--start", "--end"} or len(options) * 2 != len(parts) - 1:
        return line.mistake("Write `--start` and `--end` after the models, each once.")
    if wrong := next((day for day in options.values() if not _is_day(day)), ""):
        return line.mistake(f"`{wrong}` is no day.")
    days = (options.get("--start", ""), options.get("--end", ""))
    return replace(line.command, model=parts[0].lower(), days=days)


def _is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _start_command(request: Request) -> Start:
    command, record = request.command, request.record
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


RESTATE = Form(
    usage="/restate SELECTOR [--start DAY] [--end DAY]",
    does="computes [rows of the environment's own tables again](guides/restatement.md#in-other-environments), of "
    "these models and what is downstream, within the budget; prod's tables are never touched",
    example="/restate shop.orders --start 2026-01-01 --end 2026-01-07",
    needs="write",
    rejected="no environment is built",
    parse=_parse_line,
    rule=require_environment,
    start=_start_command,
    tree="merged",
    reply=_format_reply,
)
