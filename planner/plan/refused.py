"""What of a project a plan leaves alone since it cannot be opened: in prod it stays as it is deployed.

A model that is refused, or reads one that is, has no text to plan. Where it stands in prod it is planned by the text
that it was deployed with, as though nobody had edited it: its view and its table stay. What would compute it anew, a
change of what it reads, is blocked, since nobody knows whether the deployed text is still wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mergeplan.planner.errors import Place
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import REBUILT, Blocker, Change


@dataclass(frozen=True)
class RefusedFile:
    """A reason why models cannot be opened, and what to do (a file may have several); `stands`: prod shows them."""

    place: Place
    message: str
    hint: str = ""
    models: tuple[str, ...] = ()
    stands: bool = False

    @property
    def sentence(self) -> str:
        """Why, and what to do."""
        return f"{self.message} {self.hint}".strip()


@dataclass(frozen=True)
class Unopened:
    """What a plan leaves alone: files, models that read what they define, and the deployed ones that are held."""

    refused: tuple[RefusedFile, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # model -> what it reads
    held: frozenset[str] = frozenset()  # of the base, planned as they are deployed


ALL_OPENED = Unopened()


def blockers_for_held_models(
    changes: tuple[Change, ...], unopened_files: Unopened, models: Mapping[str, Model]
) -> list[Blocker]:
    """Every held model that a change of what it reads would compute anew, or give a preview."""
    return [
        Blocker(
            f"`{change.name}` cannot be opened, or reads a model that cannot, and what it reads changes here: it would "
            "be computed anew by the text that it was deployed with. Mend the file, or remove the model.",
            models[change.name].place,
        )
        for change in changes
        if change.name in unopened_files.held and (change.category in REBUILT or change.recomputed or change.missing)
    ]
