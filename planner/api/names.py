"""Texts of requests that may become arguments of a command: their lengths, and no control characters."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from mergeplan.planner.errors import RequestError
from mergeplan.planner.snapshot.environment import parse_environment_name

PLAIN = r"^[^\x00-\x1f\x7f]*$"


def _parse_environment(name: str) -> str:
    try:
        return parse_environment_name(name) if name else ""
    except RequestError as error:
        sentence = f"{error.message} {error.hint}".strip().replace("{", "{{").replace("}", "}}")
        raise PydanticCustomError("environment_name", sentence) from None


Name = Annotated[str, Field(min_length=1, max_length=300, pattern=PLAIN)]  # of a model, a column, a table
Word = Annotated[str, Field(max_length=500, pattern=PLAIN)]
Sql = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
Date = Annotated[str, Field(min_length=1, max_length=60, pattern=PLAIN)]
EnvironmentName = Annotated[str, Field(max_length=100, pattern=PLAIN), AfterValidator(_parse_environment)]
