"""The commands that would be accepted now: as they are typed, as boxes of the comment, as buttons of checks. Pure."""

import hashlib
import json
import re
from dataclasses import dataclass

from mergeplan.bot.commands.command import Command, Mistake
from mergeplan.bot.commands.form import Face
from mergeplan.bot.commands.policy import role_for
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.commands.table import DEFAULT_NEEDS, OFFERED
from mergeplan.bot.policy.roles import ROLES, Role
from mergeplan.bot.records import Press, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.markdown import code
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.results import cost_shown

BUTTONS_MOST, IDENTIFIER_MOST = 3, 20  # GitHub's, of one check; a label has 20 characters, a description 40
BOX = re.compile(r"- \[([ xX])\] (`+/[^\n]* <!-- [a-z-]+@[0-9a-f]{40} -->)")
KEY = re.compile(r"([a-z-]{1,20})@[0-9a-f]+")  # in a button's identifier and in a box


@dataclass(frozen=True)
class Button:
    label: str
    description: str
    identifier: str


@dataclass(frozen=True)
class Offer:
    """A command that would be accepted now; its `tag` is another one with another head, plan, prod or cost."""

    verb: str
    command: str  # without a namespace
    typed: str  # as it is typed here
    does: str
    tag: str
    needs: Role
    face: Face | None = None
    moves_prod: bool = False  # it is written, or pressed on the page of its check: a box is ticked too easily

    @property
    def line(self) -> str:
        """As it stands in the comment."""
        return f"- {code(self.typed)}: {self.does}" if self.moves_prod else self.box

    @property
    def box(self) -> str:
        """Its line in the comment: what it is and was shown with, in one, so that no other line passes for it."""
        return f"- [ ] {code(self.typed)}: {self.does} <!-- {self.verb}@{self.tag[:40]} -->"

    @property
    def identifier(self) -> str:
        """What a press of its button brings back; the press also names the check's whole head."""
        return f"{self.verb}@{self.tag}"[:IDENTIFIER_MOST]

    @property
    def button(self) -> Button | None:
        face = self.face
        return Button(face.label, f"{face.does}. Needs {self.needs}.", self.identifier) if face else None


def list_offers(record: PullRecord, prod: ProdRecord) -> tuple[Offer, ...]:
    """Return the commands that make sense in this state and that take no free text, each once."""
    needs = {**DEFAULT_NEEDS, **dict(prod.needs)}
    made = []
    for choice in (choice for form in OFFERED for choice in form.offers(record, prod)):
        command, parsed = choice.command, _parse_command(choice.command)
        need = role_for(parsed, needs, is_held=record.state is PullState.MERGED)
        does = f"{choice.does}; needs `{need}`" if ROLES.index(need) > ROLES.index("write") else choice.does
        looks = (does, _offer_tag(record, command), need, choice.face)
        typed = Shown(record, prod).write_command(command)
        made.append(Offer(parsed.verb, command, typed, *looks, moves_prod=choice.moves_prod))
    return tuple(made)


def find_ticks(before: str, after: str) -> tuple[str, ...]:
    """Return the boxes that an edit ticked, as they were before; none when it changed anything else."""
    if clear_boxes(before) != clear_boxes(after):
        return ()
    line_pairs = zip(_split_lines(before), _split_lines(after), strict=True)
    return tuple(
        old_line for old_line, new_line in line_pairs if old_line == _empty_box(old_line) and new_line != old_line
    )


def clear_boxes(text: str) -> str:
    """Return a comment of the bot with its boxes empty and its own line ends."""
    return "\n".join(map(_empty_box, _split_lines(text))) + "\n"


def has_ticks(body: str) -> bool:
    return any(_empty_box(line) != line for line in _split_lines(body))


def resolve_press(key: str, press: Press, record: PullRecord, prod: ProdRecord) -> Command | Mistake:
    """Return the command of a button or a box, if exactly that one is offered now."""
    if not press.head or press.head in filter(None, (record.head, record.promotion.merge_sha)):
        for offer in list_offers(record, prod):
            if key == offer.identifier if press.head else (key == offer.box and not offer.moves_prod):
                return _parse_command(offer.command)
    named = KEY.search(key)
    command_text = f"/{named[1]}" if named else "this"
    return Mistake(
        command_text, "It was shown with another plan, or is not offered any more.", "Look at what is shown now."
    )


def _parse_command(command: str) -> Command:
    (result,) = read_commands(command)
    assert isinstance(result, Command)
    return result


def _split_lines(text: str) -> list[str]:
    """Return a comment's lines; GitHub may end them, and the text, differently."""
    return text.rstrip().replace("\r\n", "\n").split("\n")


def _empty_box(line: str) -> str:
    """Return a line of the bot with an empty box; another line unchanged."""
    box = BOX.fullmatch(line)
    return f"- [ ] {box[2]}" if box else line


def _offer_tag(record: PullRecord, command: str) -> str:
    """Return the tag of the settled plan; an approval of a cost is bound to the cost that was shown."""
    outcome = record.outcome if record.is_settled else None
    plan = outcome.plan if outcome else None
    where = (record.repository, record.number, record.state.value, record.head, record.promotion.merge_sha)
    against = (record.base.prod_revision, record.promotion.revision, plan.id if plan else "")
    cost = cost_shown(plan) if outcome and outcome.is_too_costly else ()
    return hashlib.sha256(json.dumps([command, *where, *against, *cost]).encode()).hexdigest()
