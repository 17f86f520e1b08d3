"""May this person do this now? Facts -> Allowed or NotAllowed with the reason. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.table import FORMS
from mergeplan.bot.policy.roles import ROLES, Role


@dataclass(frozen=True)
class Allowed:
    """Go on."""


@dataclass(frozen=True)
class NotAllowed:
    """A refusal that changes nothing; `why` is a sentence for the author of the command."""

    why: str


def decide_command(command: Command, facts: Facts, needs: Mapping[str, Role]) -> Allowed | NotAllowed:
    """Decide if a command may run: first by its author, then by whether what they saw still holds."""
    reason = "" if FORMS[command.verb].anybody else _refusal_reason(command, facts, needs)
    return NotAllowed(reason) if reason else Allowed()


def role_for(command: Command, needs: Mapping[str, Role], *, is_held: bool = False) -> Role:
    """Return the role that a command takes; `is_held` is about a merge that the rules keep from prod."""
    return FORMS[command.verb].role(command, needs, is_held)


def _refusal_reason(command: Command, facts: Facts, needs: Mapping[str, Role]) -> str:
    form = FORMS[command.verb]
    if facts.elsewhere:
        return (
            f"This pull request does not merge into `{facts.elsewhere}`, so it changes nothing in prod and has no plan."
            f" It is planned when `{facts.elsewhere}` becomes its base."
        )
    if reason := form.off(facts):
        return reason
    if facts.role is None:
        return "Your permission could not be verified, so nothing was changed. Try again in a minute."
    need = role_for(command, needs, is_held=facts.is_held_merge)
    if ROLES.index(facts.role) < ROLES.index(need):
        return f"This needs the `{need}` permission on this repository; you have `{facts.role}`. Nothing was changed."
    return form.rule(command, facts)
