"""Files of a project that cannot be opened, and what a plan does with their models: in prod they stay as deployed.

A model that is refused, or reads a refused one, has no text to plan. If prod shows it, it is planned by its deployed
text, as if it were not edited: its view and its table stay. A change of a parent that would recompute it is blocked,
because it is unknown whether the deployed text is still wanted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mergeplan.planner.errors import Place
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import REBUILT, Blocker, Change


@dataclass(frozen=True)
class RefusedFile:
    """A reason why models cannot be opened, with a hint (a file may have several); `stands`: prod shows them."""

    place: Place
    message: str
    hint: str = ""
    models: tuple[str, ...] = ()
    stands: bool = False

    @property
    def sentence(self) -> str:
        """The reason and the hint."""
        return f"{self.message} {self.hint}".strip()


@dataclass(frozen=True)
class Unopened:
    """The parts of a project that a plan leaves alone: files, readers of their models, and held deployed models."""

    refused: tuple[RefusedFile, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # model -> what it reads
    held: frozenset[str] = frozenset()  # of the base, planned as they are deployed


ALL_OPENED = Unopened()


def blockers_for_held_models(
    changes: tuple[Change, ...], unopened_files: Unopened, models: Mapping[str, Model]
) -> list[Blocker]:
    """Return a blocker for each held model that a change of a parent would recompute, or give a preview."""
    return [
        Blocker(
            f"`{change.name}` cannot be opened, or reads a model that cannot, and its inputs change here: it would "
            "be computed again by the text that was deployed. Fix the file, or remove the model.",
            models[change.name].place,
        )
        for change in changes
        if change.name in unopened_files.held and (change.category in REBUILT or change.recomputed or change.missing)
    ]
