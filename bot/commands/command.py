"""A line of a comment that is a command, or nearly one: its verb, its arguments, or what is wrong with it. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

MODEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,3}")
SELECTOR = re.compile(r"\+?(tag:)?[A-Za-z_*][A-Za-z0-9_.*-]{0,200}\+?")
RESET = "reset"  # the category that takes back what a person chose
NUMBER = re.compile(r"[1-9]\d{0,8}")


@dataclass(frozen=True)
class Command:
    """One well-formed command, with what its form takes; `every` says that it is about all models."""

    verb: str
    text: str  # it begins with the verb, in every namespace
    model: str = ""
    category: str = ""
    sha: str = ""
    where: str = ""
    every: bool = False
    number: int = 0  # of a revision, or of days
    dry_run: bool = False
    select: tuple[str, ...] = ()  # selectors of models
    days: tuple[str, str] = ("", "")  # from and to, both included
    copy: bool = False  # of a restatement: in new tables, which the merge promotes
    project: str = ""  # the folder of the one project that it is for


@dataclass(frozen=True)
class Mistake:
    """A line that was meant as a command and is none: the cause, and what to type instead."""

    text: str
    cause: str
    instead: str
    project: str = ""

    @property
    def sentence(self) -> str:
        """Why the line is no command, and what to type instead, as a reply."""
        return f"{self.cause} {self.instead} Nothing was changed."


@dataclass(frozen=True)
class Line:
    """A line that begins with a verb of the bot, before its arguments are read."""

    verb: str
    text: str
    rest: str  # what stands after the verb, as it is written
    usage: str
    example: str

    @property
    def words(self) -> list[str]:
        return self.rest.replace("`", " ").split()

    @property
    def command(self) -> Command:
        """The command without arguments."""
        return Command(self.verb, self.text)

    def mistake(self, cause: str, instead: str = "") -> Mistake:
        """Return a mistake; `instead` defaults to the usage with its example."""
        return Mistake(self.text, cause, instead or f"Type `{self.usage}`, for example `{self.example}`.")


def parse_nothing(line: Line) -> Command | Mistake:
    if line.words:
        return line.mistake(f"`/{line.verb}` takes nothing after it.", f"Type `{line.usage}` on a line of its own.")
    return line.command


def parse_model(line: Line) -> Command | Mistake:
    words = line.words
    if len(words) == 1 and MODEL.fullmatch(words[0]):
        return Command(line.verb, line.text, model=words[0].lower())
    return line.mistake("It takes the name of one model.")


def resolve_model(command: Command, direct: Sequence[str]) -> str | Mistake:
    """Return the directly changed model that a command names; a unique last part of its name is enough.

    >>> resolve_model(Command("categorize", "", model="orders"), ["shop.orders", "shop.items"])
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
