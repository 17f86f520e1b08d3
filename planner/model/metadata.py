"""The description of a model and of its columns, which changes no row."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.model.property import Facet, declare


@dataclass(frozen=True)
class Metadata:
    description: str = ""
    column_descriptions: tuple[tuple[str, str], ...] = ()
    owner: str = declare("", Facet.METADATA, "who answers for it", pinned=True)
    tags: tuple[str, ...] = declare((), Facet.METADATA, "words by which it is selected", pinned=True)
    grain: tuple[str, ...] = ()
