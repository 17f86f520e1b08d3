"""The messages of the child, as data that is validated before it is used."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_VIEWS = 10_000


def _check_path(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/") or "\n" in path:
        raise ValueError("a path of the project")
    return path


def _single_line(text: str) -> str:
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= 600 else f"{line[:295]} ... {line[-300:]}"


Path = Annotated[str, AfterValidator(_check_path)]


class ChildMessage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Wrong(ChildMessage):
    """An error and its place in the project, '' if it has none; `called` if a call was wrong."""

    message: Annotated[str, AfterValidator(_single_line)]
    path: Path = ""
    line: int = 0
    called: bool = False
    file: Path = ""  # the file that was being loaded
    wants: Annotated[str, Field(pattern=r"^(\w+\.\w+)?$")] = ""  # the table whose columns a macro requested


class Registration(ChildMessage):
    """A macro, signal or model: its function's name, file and line."""

    name: str
    path: Path
    line: int


class RegisteredModel(Registration):
    arguments: dict[str, Any]


class LoadedCode(ChildMessage):
    macros: tuple[str, ...]
    signals: tuple[Registration, ...]
    models: tuple[RegisteredModel, ...]
    errors: tuple[Wrong, ...]


class Executed(ChildMessage):
    """The number of views that hold the rows that a model returned."""

    views: int = Field(ge=0, le=MOST_VIEWS)


class Reply(ChildMessage):
    """A line of the child: the result of a request, or an error."""

    ok: Any = None
    error: Wrong | None = None
