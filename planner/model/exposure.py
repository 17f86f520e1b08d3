"""Uses of tables outside of the project: a dashboard, a report, an application."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Exposure:
    """A use of models outside of the project; `type`, `owner` and `url` may be ''."""

    name: str
    models: tuple[str, ...]
    type: str = ""
    owner: str = ""
    url: str = ""
