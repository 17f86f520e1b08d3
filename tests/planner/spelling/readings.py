"""What mergeplan makes of a query's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.parent import Parent

_DEFAULTS = Defaults(datetime(2026, 1, 10, tzinfo=UTC))


class Trust(StrEnum):
    """How far mergeplan trusts its own reading of a text."""

    FOLLOWED = "translated: compared by its meaning"
    WRITTEN = "not translated: compared by the parser's tree"
    WORDS = "misread by the parser: compared word by word"
    REFUSED = "refused, with a reason"


@dataclass(frozen=True)
class Reading:
    """A text as mergeplan reads it: two texts with equal identities are called one query."""

    text: str
    runs: str  # the text that Spark is given
    trust: Trust
    identity: tuple[str, ...]
    written: str = ""  # the parser's tree as Spark SQL


def reading_of(text: str, parents: Mapping[str, Parent]) -> Reading:
    """The reading of a model with this query."""
    try:
        model, _ = parse_model(f"MODEL (name zz.model);\n{text}", "zz.sql", _DEFAULTS)
    except MergeplanError:
        return Reading(text, text, Trust.REFUSED, ())
    assert model is not None
    return _reading(text, model, parents)


def _reading(text: str, model: Model, parents: Mapping[str, Parent]) -> Reading:
    shape = model_shape(model, parents)
    trust = Trust.WORDS if model.written.misread else Trust.FOLLOWED if shape.relation is not None else Trust.WRITTEN
    return Reading(
        text, model.written.text.strip() or model.sql, trust, (shape.text, *(shape.columns or ())), model.sql
    )
