"""Templates of pages: every value is escaped, and a name that a template does not get is an error."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mergeplan.planner.wording import printable_text


def open_templates(folders: Sequence[Path], filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """Open the templates of these folders; the first folder that has a name wins."""
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable_value,
    )
    environment.filters.update(filters)
    return environment


def printable_value(value: object) -> object:
    """Return a template's output with text directions isolated."""
    return printable_text(value) if type(value) is str else value
