"""What the child answers, as data that is checked before anything is made of it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_VIEWS = 10_000


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/") or "\n" in path:
        raise ValueError("a path of the project")
    return path


def _sentence(text: str) -> str:
    """A text as one line that is no longer than one reads."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:600]


Path = Annotated[str, AfterValidator(_inside)]


class ChildMessage(BaseModel):
    """An answer of the child."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Wrong(ChildMessage):
    """What went wrong, and where in the project, '' when nowhere; `called` when it was called wrongly."""

    message: Annotated[str, AfterValidator(_sentence)]
    path: Path = ""
    line: int = 0
    called: bool = False
    file: Path = ""  # that was being loaded


class Registration(ChildMessage):
    """A macro, signal or model: its function's name, file and line."""

    name: str
    path: Path
    line: int


class RegisteredModel(Registration):
    """A model, with what @model was given."""

    arguments: dict[str, Any]


class LoadedCode(ChildMessage):
    """What a project's files register."""

    macros: tuple[str, ...]
    signals: tuple[Registration, ...]
    models: tuple[RegisteredModel, ...]
    errors: tuple[Wrong, ...]


class Executed(ChildMessage):
    """How many views hold the rows that a model returned."""

    views: int = Field(ge=0, le=MOST_VIEWS)


class Reply(ChildMessage):
    """A line of the child: what it was asked for, or what went wrong."""

    ok: Any = None
    error: Wrong | None = None
