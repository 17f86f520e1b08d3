"""A comment's text -> the commands in it, and what is wrong with those that are nearly commands. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches

from mergeplan.bot.verbs import FORMS, Role, Takes, Verb

MARKER = "<!-- mergeplan"  # every comment of the bot carries one; its own words are never commands
MODEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,3}")
SELECTOR = re.compile(r"\+?(tag:)?[A-Za-z_*][A-Za-z0-9_.*-]{0,200}\+?")
COMMAND = re.compile(r" {0,3}(`*)/([A-Za-z][A-Za-z-]{0,30})(?=$|[\s`])(.*)")
FENCE = re.compile(r"(?: {0,3}(?:[-*+]|\d{1,9}[.)])(?= ))* {0,3}(`{3,}|~{3,})(.*)")  # also begun within a list's item
FENCE_END = re.compile(r" *(`{3,}|~{3,})\s*")
SPAN_OR_COMMENT = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)|<!--")


RESET = "reset"
CATEGORIES: Mapping[str, str] = {
    "breaking": "breaking",
    "non-breaking": "non_breaking",
    "non_breaking": "non_breaking",
    "nonbreaking": "non_breaking",
    "forward-only": "forward_only",
    "forward_only": "forward_only",
    RESET: RESET,
}
EVERY = "--all"
DRY_RUN = "--dry-run"
PROJECT = re.compile(r"(?<!\S)(?:--project(?:=|\s+)|-p\s+)`?([A-Za-z0-9._/-]{1,200})`?(?!\S)")
NEAR = 0.8  # how alike an unknown word must be to one of ours, to be answered
CATEGORY_NAMES = ("breaking", "non-breaking", "forward-only", RESET)


@dataclass(frozen=True)
class Command:
    """One well-formed command, with what its form takes; `every` says that it is about all models."""

    verb: Verb
    text: str
    model: str = ""
    category: str = ""
    sha: str = ""
    where: str = ""
    every: bool = False
    number: int = 0  # of a revision, or of days
    dry_run: bool = False
    days: tuple[str, str] = ("", "")  # from and to, both included
    project: str = ""  # the folder of the one project that it is for


@dataclass(frozen=True)
class Mistake:
    """A line that was meant as a command and is none: the cause, and what to type instead."""

    text: str
    cause: str
    instead: str
    project: str = ""


def read_commands(body: str, namespace: str = "") -> tuple[Command | Mistake, ...]:
    """The commands that stand at the start of a line, in order; quotes, code blocks and talk give none.

    With a namespace only `/NAMESPACE plan` and `/mergeplan plan` are ours, and `/plan` is another bot's.
    """
    if MARKER in body:
        return ()
    lines = prose_lines(body.replace("\r\n", "\n").replace("\r", "\n"))
    results = (_read_line(line, namespace.lower()) for line in lines)
    return tuple(result for result in results if result is not None)


def prose_lines(text: str) -> Iterable[str]:
    """The lines that are neither quoted, nor in a fenced or indented code block, nor in an HTML comment."""
    fence, quoting, hidden = "", False, False
    for whole in text.split("\n"):
        if fence:
            end = FENCE_END.fullmatch(whole)
            fence = "" if end and end[1].startswith(fence) else fence
            continue
        line, hidden = _strip_comments(whole, hidden)
        mark = FENCE.fullmatch(line)
        if mark and not (mark[1].startswith("`") and "`" in mark[2]):
            fence = mark[1]
            continue
        if not line.strip():
            quoting = False
            continue
        quoting = line.lstrip(" ").startswith(">") or (quoting and not COMMAND.fullmatch(line))
        indented = line.startswith(("    ", "\t"))
        if not quoting and not indented:
            yield line


def _strip_comments(line: str, hidden: bool) -> tuple[str, bool]:
    """A line without its HTML comments, and whether one goes on; what stands in a code span opens none."""
    shown, at = [], 0
    while at < len(line):
        if hidden:
            end = line.find("-->", at)
            if end < 0:
                break
            at, hidden = end + 3, False
        mark = SPAN_OR_COMMENT.search(line, at)
        if mark is None:
            shown.append(line[at:])
            break
        hidden = mark[0] == "<!--"
        shown.append(line[at : mark.start() if hidden else mark.end()])
        at = mark.end()
    return "".join(shown), hidden


def _read_line(line: str, namespace: str) -> Command | Mistake | None:
    match = COMMAND.fullmatch(line.rstrip())
    if not match:
        return None
    ticks, word, rest = match[1], match[2].lower(), match[3]
    if ticks and not rest.endswith(ticks):
        return None  # `/plan` in the middle of a sentence that happens to begin a line
    rest = (rest.removesuffix(ticks) if ticks else rest).strip()
    addressed = word in ("mergeplan", namespace)
    if addressed:
        word, _, rest = rest.partition(" ")
        word, rest = word.replace("`", "").lower().lstrip("/") or "help", rest.strip()
    elif namespace:
        return None
    shown = " ".join([f"/{word}", *rest.split()])
    project, rest = _project(rest)
    result = _parse(Verb(word), rest, shown) if word in set(Verb) else _unknown(shown, word, addressed)
    return replace(result, project=project) if result else None


def _project(rest: str) -> tuple[str, str]:
    """The folder after `--project`, and the rest without both; what stands after `--where` is a condition's."""
    before, where, condition = rest.partition("--where")
    named = PROJECT.search(before)
    if named is None:
        return "", rest
    kept = f"{before[: named.start()]} {before[named.end() :]}".strip()
    return named[1].strip("/"), f"{kept} {where}{condition}".strip()


def _unknown(shown: str, word: str, addressed: bool) -> Mistake | None:
    """A near miss is answered; a word unlike ours is another bot's business."""
    # `/approve` is many a bot's, and no slip of `/approve-cost`.
    near = get_close_matches(word, [verb.value for verb in Verb], n=1, cutoff=0.6 if addressed else NEAR)
    if not near and not addressed:
        return None
    guess = f"Did you mean `/{near[0]}`? " if near else ""
    valid = ", ".join(f"`/{verb.value}`" for verb in Verb)
    return Mistake(shown, "There is no such command.", f"{guess}Commands: {valid}.")


def _parse(verb: Verb, rest: str, shown: str) -> Command | Mistake:
    words = rest.replace("`", " ").split()
    usage = f"Type `{FORMS[verb].usage}`, for example `{FORMS[verb].example}`."
    match FORMS[verb].takes:
        case Takes.ANYTHING:
            return Command(verb, shown)
        case Takes.CATEGORY:
            return _categorize(words, shown)
        case Takes.HEAD:
            if len(words) == 1 and re.fullmatch(r"[0-9a-fA-F]{7,64}", words[0]):
                return Command(verb, shown, sha=words[0].lower())
            cause = "It needs the whole name of the commit that may be planned."
            return Mistake(shown, cause, f"Type `{FORMS[verb].usage}`.")
        case Takes.MODEL:
            if len(words) == 1 and MODEL.fullmatch(words[0]):
                return Command(verb, shown, model=words[0].lower())
            return Mistake(shown, "It takes the name of one model.", usage)
        case Takes.NUMBER:
            if not words or (len(words) == 1 and re.fullmatch(r"[1-9]\d{0,8}", words[0])):
                return Command(verb, shown, number=int(words[0]) if words else 0)
            return Mistake(shown, "It takes one whole number, or nothing.", usage)
        case Takes.REVISION:
            return _rollback(verb, words, shown, usage)
        case Takes.SELECTOR_AND_DAYS:
            return _parse_days(verb, words, shown, usage)
        case Takes.MODEL_AND_CONDITION:
            return _parse_condition(verb, rest, shown, usage)
    if words:
        cause = f"`/{verb.value}` takes nothing after it."
        return Mistake(shown, cause, f"Type `{FORMS[verb].usage}` on a line of its own.")
    return Command(verb, shown)


def _rollback(verb: Verb, words: Sequence[str], shown: str, usage: str) -> Command | Mistake:
    """A revision, or none, and `--dry-run` before or after it: whatever else stands there, nothing may be undone."""
    dry_run, rest = DRY_RUN in words, [word for word in words if word != DRY_RUN]
    if len(words) - len(rest) > 1 or len(rest) > 1 or not all(re.fullmatch(r"[1-9]\d{0,8}", word) for word in rest):
        return Mistake(shown, "It takes the number of a revision, or nothing, and `--dry-run`.", usage)
    return Command(verb, shown, number=int(rest[0]) if rest else 0, dry_run=dry_run)


def _parse_days(verb: Verb, words: Sequence[str], shown: str, usage: str) -> Command | Mistake:
    """A selector, and days after `--start` and `--end` in any order."""
    parts = [part for word in words for part in word.split("=", 1)]
    if not parts or not SELECTOR.fullmatch(parts[0].lower()) or len(parts) % 2 == 0:
        return Mistake(shown, "It takes models, and days after `--start` and `--end`.", usage)
    options = dict(zip(parts[1::2], parts[2::2], strict=True))
    if options.keys() - {"--start", "--end"} or len(options) * 2 != len(parts) - 1:
        return Mistake(shown, "After the models stand `--start` and `--end`, each once.", usage)
    if wrong := next((day for day in options.values() if not _is_day(day)), ""):
        return Mistake(shown, f"`{wrong}` is no day.", usage)
    return Command(verb, shown, model=parts[0].lower(), days=(options.get("--start", ""), options.get("--end", "")))


def _is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _parse_condition(verb: Verb, rest: str, shown: str, usage: str) -> Command | Mistake:
    """What stands after `--where` is the condition, as it is written."""
    before, separator, where = rest.partition("--where")
    words = before.replace("`", " ").split()
    if len(words) > 1 or (words and not MODEL.fullmatch(words[0])):
        return Mistake(shown, "It takes the name of one model, or none.", usage)
    where = where.strip().removeprefix("=").strip()
    if separator and not where:
        return Mistake(shown, "No condition stands after `--where`.", usage)
    return Command(verb, shown, model=words[0].lower() if words else "", where=where)


def _categorize(words: Sequence[str], shown: str) -> Command | Mistake:
    usage = f"Type `{FORMS[Verb.CATEGORIZE].usage}`, for example `{FORMS[Verb.CATEGORIZE].example}`."
    if not 1 <= len(words) <= 2:
        return Mistake(shown, "It takes a category, and the model's name before it when several models changed.", usage)
    category = CATEGORIES.get(words[-1].lower())
    if category is None:
        near = get_close_matches(words[-1].lower(), CATEGORIES, n=1, cutoff=0.5)
        guess = f"Did you mean `{CATEGORIES[near[0]].replace('_', '-')}`? " if near else ""
        valid = ", ".join(f"`{name}`" for name in CATEGORY_NAMES)
        return Mistake(shown, "That is not a category.", f"{guess}Categories: {valid}.")
    model = words[0] if len(words) == 2 else ""
    if model == EVERY:
        return Command(Verb.CATEGORIZE, shown, category=category, every=True)
    if model and not MODEL.fullmatch(model):
        return Mistake(shown, "That cannot be the name of a model.", usage)
    return Command(Verb.CATEGORIZE, shown, model=model.lower(), category=category)


def role_for(command: Command, needs: Mapping[str, Role], *, held: bool = False) -> Role:
    """The role that a command takes by the project's rules; `held`: of a merge that the rules keep from prod.

    To ask what a rollback would do takes what other questions take; to promote against the rules takes `admin`.
    """
    if command.verb is Verb.DEPLOY and held:
        return "admin"
    verb = Verb.DIFF if command.dry_run else command.verb
    return needs.get(verb.value, "admin")


def resolve_model(command: Command, direct: Sequence[str]) -> str | Mistake:
    """The directly changed model that a /categorize is about; its last part is enough when only one has it.

    >>> chosen_model(Command(Verb.CATEGORIZE, "", model="orders"), ["shop.orders", "shop.items"])
    'shop.orders'
    """
    valid = "Directly changed here: " + (", ".join(f"`{name}`" for name in direct) or "none") + "."
    if not command.model:
        if len(direct) == 1:
            return direct[0]
        cause = (
            "No model is changed directly." if not direct else f"{len(direct)} models are changed directly: say which."
        )
        return Mistake(command.text, cause, valid)
    fits = [name for name in direct if name.lower() == command.model or name.lower().endswith(f".{command.model}")]
    if len(fits) == 1:
        return fits[0]
    if fits:
        return Mistake(command.text, f"{len(fits)} models have that name: write it in full.", valid)
    names = {name.lower(): name for name in direct} | {name.lower().rsplit(".", 1)[-1]: name for name in direct}
    near = get_close_matches(command.model, names, n=1, cutoff=0.5)
    guess = f"Did you mean `{names[near[0]]}`? " if near else ""
    return Mistake(command.text, "This pull request does not change that model directly.", guess + valid)
