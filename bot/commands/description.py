"""A pull request's description -> the restatements that it names, and what an edit of it begins and ends. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mergeplan.bot.commands.command import RESET, Command, Mistake
from mergeplan.bot.commands.reading import read_commands

WITHOUT_COPY = "In a description it needs `--copy`.", "Without it, write the command in a comment."
TWICE = "The description restates that twice.", "Keep one line, and write it again."


@dataclass(frozen=True)
class DescriptionEdit:
    """What an edit asks for, as lines of commands; `hidden` if the text before held one where it was no command."""

    lines: tuple[str, ...] = ()
    hidden: bool = False


def read_restatements(text: str, namespace: str = "") -> tuple[Command | Mistake, ...]:
    return tuple(line for line in read_commands(text, namespace) if line.text.split()[0] == "/restate")


def compare_descriptions(before: str, after: str, namespace: str = "") -> DescriptionEdit:
    """Return what was added since the text before, and a reset for each restatement that it no longer has."""
    old_lines, new_lines = read_restatements(before, namespace), read_restatements(after, namespace)
    old_keys, new_keys = set(map(_key, old_lines)), set(map(_key, new_lines))
    additions = [line for line in new_lines if _key(line) not in old_keys]
    replaced = set(map(_subject, _list_copies(additions)))
    removals = [
        line for line in _list_copies(old_lines) if _key(line) not in new_keys and _subject(line) not in replaced
    ]
    texts = dict.fromkeys((*map(_reset_text, removals), *(line.text for line in additions)))
    old_words = _words(before)
    hidden = any(_words(line.text.removeprefix("/")) in old_words for line in additions)
    return DescriptionEdit(tuple(f"/mergeplan {text.removeprefix('/')}" for text in texts), hidden)


def keep_current(
    requests: Iterable[Command | Mistake], edited_text: str, present_text: str, namespace: str = ""
) -> tuple[Command | Mistake, ...]:
    """Return an edit's requests that the description still makes; one whose subject is restated twice is a mistake."""
    lines = read_restatements(present_text, namespace)
    keys, copies = set(map(_key, lines)), list(_list_copies(lines))
    edit_keys = set(map(_key, read_restatements(edited_text, namespace)))
    later_subjects = {_subject(line) for line in copies if _key(line) not in edit_keys}
    counts = Counter(map(_subject, copies))
    return tuple(
        _check_request(request, counts)
        for request in requests
        if (_subject(request) not in later_subjects if _is_reset(request) else _key(request) in keys)
    )


def _check_request(request: Command | Mistake, counts: Counter[tuple[str, str]]) -> Command | Mistake:
    if isinstance(request, Mistake) or _is_reset(request):
        return request
    wrong = WITHOUT_COPY if not request.copy else TWICE if counts[_subject(request)] > 1 else None
    return Mistake(request.text, *wrong, request.project) if wrong else request


def _list_copies(lines: Iterable[Command | Mistake]) -> Iterator[Command]:
    return (line for line in lines if isinstance(line, Command) and line.copy and not _is_reset(line))


def _is_reset(line: Command | Mistake) -> bool:
    return isinstance(line, Command) and line.category == RESET


def _subject(line: Command | Mistake) -> tuple[str, str]:
    return (line.model if isinstance(line, Command) else "", line.project)


def _reset_text(line: Command) -> str:
    return f"/restate {line.model} --copy --reset{f' --project {line.project}' if line.project else ''}"


def _key(line: Command | Mistake) -> Command | Mistake:
    return replace(line, text="")


def _words(text: str) -> str:
    return " ".join(text.replace("`", " ").lower().split())
