"""The names that `@name` can refer to while a file is loaded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token

from mergeplan.planner.parsing.sql.user_macros import NoMacros, Scalar, UserMacros, Variable

SUFFIXES = ("dt", "dtntz", "date", "ds", "ts", "tstz", "epoch", "millis", "hour")
DATES = frozenset(f"{prefix}_{suffix}" for prefix in ("start", "end", "execution") for suffix in SUFFIXES)
EVALUATING, CREATING = "evaluating", "creating"

ColumnTypes = Mapping[str, str]  # column -> Spark type, '' where it is not known
Lookup = Callable[[str], ColumnTypes | None]  # `schema.table` -> its columns, None when they are not known


def no_columns(table: str) -> ColumnTypes | None:
    return None


@dataclass(frozen=True)
class MacroScope:
    """The values of `@name`: variables (in lower case), the gateway; `any_name` preserves unknown names for later.

    An audit's parameters are known only where it is called, so its query is read with `any_name`. `stays` are names
    that are always preserved, because they are known only when the SQL runs. `columns` returns the columns of a table.
    """

    variables: Mapping[str, Variable] = field(default_factory=dict)
    gateway: str = ""
    any_name: bool = False
    macros: UserMacros = field(default_factory=NoMacros)
    blueprint: Mapping[str, tuple[Token, ...]] = field(default_factory=dict)
    model: str = ""
    kind: str = ""
    stage: str = EVALUATING
    stays: frozenset[str] = frozenset()
    columns: Lookup = no_columns

    def variable(self, name: str) -> Variable:
        """Return the value of a name in lower case; raise KeyError if it has none."""
        if name in self.variables:
            return self.variables[name]
        facts: dict[str, Scalar] = {"gateway": self.gateway, "runtime_stage": self.stage, "model_kind_name": self.kind}
        if name == "model_kind_name" and not self.kind:
            raise KeyError(name)
        return facts[name]

    def names(self) -> set[str]:
        scope_names = {"gateway", "runtime_stage", *(("model_kind_name",) if self.kind else ())}
        return {*self.variables, *self.blueprint, *scope_names}
