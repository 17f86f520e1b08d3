"""The evaluator that Python macros get; sqlglot is imported by each method, as it takes longer than a child's start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

# The dates of a run, which are not known when a macro runs: as SQL they are the macros of these names.
DATES = [
    f"{which}_{form}"
    for which in ("start", "end", "execution")
    for form in ("date", "ds", "ts", "tstz", "dt", "dtntz", "epoch", "millis", "hour")
]


class UnknownColumns(ValueError):
    """The columns of a table are not known here; `wants` is its name."""

    def __init__(self, table: str) -> None:
        super().__init__(f"the columns of `{table}` are not known: declare them with `columns` in its model")
        self.wants = table


class Evaluator:
    """The tools of a macro while it runs: variables, columns, the model and the gateway."""

    def __init__(self, request: Mapping[str, Any], macros: Mapping[str, Callable[..., Any]]) -> None:
        self.dialect: str = request.get("dialect", "spark")
        self.gateway: str | None = request.get("gateway") or None
        self.model_fqn: str = request.get("model", "")
        self.runtime_stage = "loading"
        self.this_model = self.model_fqn
        self._columns: Mapping[str, Any] = request.get("columns", {})
        self._variables = {name.lower(): value for name, value in request.get("variables", {}).items()}
        self._macros = macros

    @cached_property
    def locals(self) -> dict[str, Any]:
        """The variables of the project and of the run."""
        from sqlglot import exp

        return {
            **{name: exp.Parameter(this=exp.var(name)) for name in DATES},
            **self._variables,
            "gateway": self.gateway,
            "runtime_stage": self.runtime_stage,
            "this_model": self.this_model,
        }

    def var(self, name: str, default: Any = None) -> Any:
        return self._variables.get(name.lower(), default)

    blueprint_var = var

    def columns_to_types(self, table: Any) -> dict[str, exp.DataType]:
        """Return column -> type of a table; raise UnknownColumns if its columns are not known."""
        from sqlglot import exp

        name = table if isinstance(table, str) else table.sql(dialect=self.dialect)
        key = name.replace("`", "").replace('"', "").lower()
        if key not in self._columns:
            raise UnknownColumns(key)
        return {column: exp.DataType.build(kind, dialect="spark") for column, kind in self._columns[key]}

    def parse_one(self, sql: Any, **options: Any) -> Any:
        from sqlglot import parse_one

        return parse_one(sql, dialect=self.dialect, **options) if isinstance(sql, str) else sql

    def transform(self, expression: Any) -> Any:
        """Return the expression with variables of the project replaced."""
        from sqlglot import exp

        def replace_variable(node: Any) -> Any:
            if isinstance(node, exp.Parameter):
                name = node.name.lower()
                if name in self._variables:
                    return exp.convert(self._variables[name])
            return node

        return expression.transform(replace_variable) if isinstance(expression, exp.Expression) else expression

    def eval_expression(self, expression: Any) -> Any:
        from sqlglot import exp

        return expression.to_py() if isinstance(expression, exp.Expression) else expression

    def send(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._macros[name.lower()](self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`evaluator.{name}` is not supported")
