"""What the first build of prod leaves: made once in a process by a bot and a sandbox, and copied for each test."""

from __future__ import annotations

import copy
import itertools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mergeplan_sandbox.state import State

OWN = frozenset({"folder", "base_url", "app", "hook", "lock", "ids"})  # of each sandbox


@dataclass(frozen=True)
class BuiltProd:
    """The sandbox's repositories and the bot's home in a folder, and what the sandbox remembers beside them."""

    folder: Path
    memory: Mapping[str, Any]
    next_id: int

    @classmethod
    def keep(cls, folder: Path, state: State) -> BuiltProd:
        """What a bench that has ended left in its folder."""
        memory = {name: value for name, value in vars(state).items() if name not in OWN}
        return cls(folder, memory, state.next_id())

    def copy_to(self, folder: Path, state: State) -> None:
        """Puts all of it into the folder of a bench and the state of its sandbox, before either starts."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        vars(state).update(copy.deepcopy(self.memory))
        state.ids = itertools.count(self.next_id)
