"""Who uses tables outside of the project: a dashboard, a report, an application."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exposure:
    """A use of models by somebody who has no model here; `type`, `owner` and `url` may be ''."""

    name: str
    models: tuple[str, ...]
    type: str = ""
    owner: str = ""
    url: str = ""
