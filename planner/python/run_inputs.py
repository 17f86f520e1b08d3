"""The additional inputs of a Python model for one run, beside the tables that it reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunInputs:
    """Temporary views to make first, name -> query, and variables in place of the project's."""

    views: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)


NOTHING = RunInputs()
