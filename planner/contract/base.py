"""What all data of the contract have in common. It imports no SQL, no Spark and nothing of the planner's decisions.

A key that a reader does not know is passed over, so that keys may come; `VERSION` changes when one goes or changes its
meaning. A key that does not apply is left out where its field is `Maybe`.
"""

import math
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from mergeplan.planner.data_field import describe

T = TypeVar("T")
VERSION = 1
DIALECT = "https://json-schema.org/draft/2020-12/schema"  # of the JSON Schemas
OTHER_VERSION = "other_version"  # pydantic's name for the error


class Data(BaseModel):
    """A JSON object of the contract: frozen, and tolerant of keys that it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        from_attributes=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
        protected_namespaces=(),
        json_schema_serialization_defaults_required=True,
        defer_build=True,
    )


# None: the key does not apply, and is left out.
Maybe = Annotated[T | None, Field(exclude_if=lambda value: value is None)]


def _check_version(version: int) -> int:
    if version != VERSION:
        raise PydanticCustomError(OTHER_VERSION, "this is version {version}", {"version": version})
    return version


Span = tuple[str, str]  # half-open: ["2026-01-01", "2026-01-08"]; where not of whole days, "2026-01-01T06:00:00Z"
Spans = tuple[Span, ...]
Names = tuple[str, ...]
Version = Annotated[
    int,
    AfterValidator(_check_version),
    Field(description="of these keys: it changes when a key goes or changes its meaning, not when one comes"),
    WithJsonSchema({"type": "integer", "const": VERSION}),
]
Change = Annotated[
    str, WithJsonSchema({"enum": ["added", "removed", "direct", "indirect", "metadata", "due", "restated"]})
]
Category = Annotated[
    str,
    WithJsonSchema(
        {
            "enum": [
                "breaking",
                "non_breaking",
                "forward_only",
                "metadata",
                "equivalent",
                "indirect_breaking",
                "indirect_non_breaking",
                "undecided",
            ]
        }
    ),
]
Stage = Annotated[str, WithJsonSchema({"enum": ["tests", "create", "backfill", "compare", "promote"]})]
Severity = Annotated[str, WithJsonSchema({"enum": ["error", "warning"]})]
How = Annotated[str, WithJsonSchema({"enum": ["made_from", "decides_rows", "every_column"]})]
Direction = Literal["upstream", "downstream"]
Detail = Literal["off", "counts", "sample"]  # of a data diff, from least to most


class Sample(Data):
    """Some rows of a table."""

    columns: Names = describe((), "their names")
    rows: tuple[tuple[Any, ...], ...] = describe((), "a list of values for each row")


def convert_to_json(value: object) -> Any:
    """Convert a value to JSON; what JSON cannot express becomes text."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(convert_to_json(key)): convert_to_json(element) for key, element in value.items()}
    if names := getattr(value, "__fields__", None):  # a struct comes as a tuple with names
        return {name: convert_to_json(element) for name, element in zip(names, value, strict=True)}  # type: ignore[call-overload]
    if isinstance(value, (list, tuple)):
        return [convert_to_json(element) for element in value]
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else str(value)
