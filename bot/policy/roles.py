"""The roles on a repository, from the least to the most, as GitHub names them."""

from typing import Literal

Role = Literal["none", "read", "triage", "write", "maintain", "admin"]
ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")
