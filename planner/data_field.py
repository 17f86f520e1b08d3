"""A field of a pydantic model that has a default, and a sentence for the schema."""

from typing import TypeVar

from pydantic import Field

T = TypeVar("T")


def describe(default: T, text: str) -> T:
    return Field(default=default, description=text)
