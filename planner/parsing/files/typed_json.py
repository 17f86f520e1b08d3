"""JSON that others wrote, read once by types: what is not of its form is one sentence with the file and the key."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mergeplan.planner.errors import Place, ProjectError

T = TypeVar("T", bound="JsonPart")
SHOWN = 120  # characters of a key in a sentence


def absent(empty: Any) -> BeforeValidator:
    """A null is what is left out: tools write it for what they do not know."""
    return BeforeValidator(lambda value: empty if value is None else value)


Text = Annotated[str, absent("")]
FilePath = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$")]


class JsonPart(BaseModel):
    """A part of such a file. Keys that it does not name are skipped: a later version of the tool may have more."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def read_json(kind: type[T], path: str, text: str, hint: str = "") -> T:
    """The content of a file; ProjectError with the key that is wrong, and the thing that has it."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        raise ProjectError("This is not JSON.", place=Place(path, 1), hint=hint)
    if not first["loc"]:
        raise ProjectError("This is not a JSON object.", place=Place(path, 1), hint=hint)
    raise ProjectError(
        f"{describe_place(first['loc'])} is wrong: {_lower(first['msg'])}.", place=Place(path, 1), hint=hint
    )


def describe_place(loc: tuple[int | str, ...]) -> str:
    """A place in a file as a phrase: `columns.a.name` of `model.shop.total`."""
    collection, *keys = (str(part)[:SHOWN] for part in loc)
    if len(keys) < 2:
        return f"`{'.'.join((collection, *keys))}`"
    return f"`{'.'.join(keys[1:])}` of `{keys[0]}`"


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")
