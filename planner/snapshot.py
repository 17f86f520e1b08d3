"""A model at a fingerprint, and the version that names its physical table."""

from __future__ import annotations

from dataclasses import dataclass

from planner.fingerprint import Fingerprint, digest
from planner.model import Kind, Model

PHYSICAL = "mergeplan__"


@dataclass(frozen=True)
class Snapshot:
    """A model as it was when it was planned; `columns` are its output columns' names, None when they cannot be known.

    `forced` says that a person's word, not a rule, let it keep an earlier version's table.
    """

    model: Model
    fingerprint: Fingerprint
    version: str
    columns: tuple[str, ...] | None
    forced: bool = False

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def kind(self) -> Kind:
        return self.model.kind

    @property
    def table(self) -> str:
        """Where its rows are: an external model is its own table."""
        return self.name if self.kind is Kind.EXTERNAL else physical_name(self.name, self.version)


def physical_name(name: str, version: str) -> str:
    """`shop.orders` at version `ab12` -> `mergeplan__shop.shop__orders__ab12`."""
    schema, table = name.split(".")
    return f"{PHYSICAL}{schema}.{schema}__{table}__{version}"


def version_of(model: Model, data: str, parents: dict[str, str]) -> str:
    """The version of a model that is built anew: a hash of what it is and of the versions it reads.

    Two builds with equal versions hold equal rows; that is why a table built in one environment serves in another.
    """
    return digest(model.name, data, *(f"{name}={version}" for name, version in sorted(parents.items())))[:12]
