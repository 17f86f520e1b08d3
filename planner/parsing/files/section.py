"""The base of every mapping of config.yaml."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of config.yaml: frozen, and no key that is not named here."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)
