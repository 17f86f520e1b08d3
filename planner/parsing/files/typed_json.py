"""JSON of other tools, read once by types; an error is one sentence with the file and the key."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mergeplan.planner.errors import Place, ProjectError

T = TypeVar("T", bound="JsonPart")
SHOWN = 120  # characters of a key in a sentence


def null_default(empty: Any) -> BeforeValidator:
    """Return a validator that reads null as a missing value, because tools write null for unknown values."""
    return BeforeValidator(lambda value: empty if value is None else value)


Text = Annotated[str, null_default("")]
FilePath = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$")]


class JsonPart(BaseModel):
    """A part of such a file. Unknown keys are skipped, because a later version of the tool may have more."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def read_json(kind: type[T], path: str, text: str, hint: str = "") -> T:
    """Return the content of a file; raise ProjectError with the wrong key and the object that has it."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        raise ProjectError("This is not JSON.", place=Place(path, 1), hint=hint)
    if not first["loc"]:
        raise ProjectError("This is not a JSON object.", place=Place(path, 1), hint=hint)
    reason = first["msg"][:1].lower() + first["msg"][1:].rstrip(".")
    raise ProjectError(f"{describe_place(first['loc'])} is wrong: {reason}.", place=Place(path, 1), hint=hint)


def describe_place(loc: tuple[int | str, ...]) -> str:
    """Return a location in a file as a phrase: `columns.a.name` of `model.shop.total`."""
    collection, *keys = (str(part)[:SHOWN] for part in loc)
    if len(keys) < 2:
        return f"`{'.'.join((collection, *keys))}`"
    return f"`{'.'.join(keys[1:])}` of `{keys[0]}`"
