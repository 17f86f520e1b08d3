"""A comment's text -> the commands in it, and what is wrong with those that are nearly commands. Pure."""

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from mergeplan.bot.commands.command import Command, Line, Mistake
from mergeplan.bot.commands.table import FORMS
from mergeplan.bot.report.markdown import MARKER

COMMAND = re.compile(r" {0,3}(`*)/([A-Za-z][A-Za-z-]{0,30})(?=$|[\s`])(.*)")
FENCE = re.compile(r"(?: {0,3}(?:[-*+]|\d{1,9}[.)])(?= ))* {0,3}(`{3,}|~{3,})(.*)")  # also begun within a list's item
FENCE_END = re.compile(r" *(`{3,}|~{3,})\s*")
SPAN_OR_COMMENT = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)|<!--|<pre\b", re.IGNORECASE)
ENDS = {"<!--": re.compile("-->"), "<pre": re.compile("</pre>", re.IGNORECASE)}
PROJECT = re.compile(r"(?<!\S)(?:--project(?:=|\s+)|-p\s+)`?([A-Za-z0-9._/-]{1,200})`?(?!\S)")
NEAR = 0.8  # how alike an unknown word must be to one of ours, to be answered


def read_commands(body: str, namespace: str = "") -> tuple[Command | Mistake, ...]:
    """Return the commands at the start of lines, in order; quotes, code blocks and prose give none.

    With a namespace only `/NAMESPACE plan` and `/mergeplan plan` are ours, and `/plan` is another bot's.
    """
    if MARKER in body:
        return ()
    lines = prose_lines(body.replace("\r\n", "\n").replace("\r", "\n"))
    results = (_read_line(line, namespace.lower()) for line in lines)
    return tuple(result for result in results if result is not None)


def prose_lines(text: str) -> Iterable[str]:
    """Return the lines outside of quotes, of fenced, indented or <pre> code blocks, and of HTML comments."""
    fence, quoting, hidden = "", False, None
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


def _strip_comments(line: str, hidden: re.Pattern[str] | None) -> tuple[str, re.Pattern[str] | None]:
    """Return a line without its HTML comments and <pre>, and the end of one that continues; a code span opens none."""
    shown, at = [], 0
    while at < len(line):
        if hidden:
            end = hidden.search(line, at)
            if end is None:
                break
            at, hidden = end.end(), None
        mark = SPAN_OR_COMMENT.search(line, at)
        if mark is None:
            shown.append(line[at:])
            break
        hidden = ENDS.get(mark[0].lower())
        shown.append(line[at : mark.start() if hidden else mark.end()])
        at = mark.end()
    return "".join(shown), hidden


def _read_line(line: str, namespace: str) -> Command | Mistake | None:
    match = COMMAND.fullmatch(line.rstrip())
    if not match:
        return None
    ticks, word, argument_text = match[1], match[2].lower(), match[3]
    if ticks and not argument_text.endswith(ticks):
        return None  # `/plan` in the middle of a sentence that happens to begin a line
    argument_text = (argument_text.removesuffix(ticks) if ticks else argument_text).strip()
    addressed = word in ("mergeplan", namespace)
    if addressed:
        word, _, argument_text = argument_text.partition(" ")
        word, argument_text = word.replace("`", "").lower().lstrip("/") or "help", argument_text.strip()
    elif namespace:
        return None
    shown = " ".join([f"/{word}", *argument_text.split()])
    project, argument_text = _split_project(argument_text)
    form = FORMS.get(word)
    if form is None:
        result: Command | Mistake | None = _explain_unknown(shown, word, addressed)
    else:
        result = form.parse(Line(word, shown, argument_text, form.usage, form.example))
    return replace(result, project=project) if result else None


def _split_project(rest: str) -> tuple[str, str]:
    """Return the folder after `--project`, and the rest; text after `--where` belongs to a condition."""
    option_text, where, condition = rest.partition("--where")
    named = PROJECT.search(option_text)
    if named is None:
        return "", rest
    remaining_text = f"{option_text[: named.start()]} {option_text[named.end() :]}".strip()
    return named[1].strip("/"), f"{remaining_text} {where}{condition}".strip()


def _explain_unknown(line: str, word: str, is_addressed: bool) -> Mistake | None:
    """Return a mistake for a near miss; a word unlike our verbs is another bot's."""
    # `/approve` is many a bot's, and no slip of `/approve-cost`.
    near = get_close_matches(word, FORMS, n=1, cutoff=0.6 if is_addressed else NEAR)
    if not near and not is_addressed:
        return None
    guess = f"Did you mean `/{near[0]}`? " if near else ""
    valid = ", ".join(f"`/{verb}`" for verb in FORMS)
    return Mistake(line, "There is no such command.", f"{guess}Commands: {valid}.")
