"""`os.environ` of a config.py: each variable is a reference, and listing all of them is refused."""

import os
from collections.abc import Callable
from typing import Any

from mergeplan.planner.python.config_code.references import (
    NAME,
    Number,
    References,
    Scalar,
    Text,
    Variable,
    plain_value,
)

OF_SPARK = ("SPARK", "PYSPARK", "JAVA", "JDK", "HADOOP", "HIVE", "AWS", "MERGEPLAN")  # how variables of a Spark begin


class Environment:
    """`os.environ` of a config.py; what the file sets there is what it reads afterwards, and is not stored."""

    def __init__(self, references: References, in_try: Callable[[], bool] = lambda: False) -> None:
        self._references = references
        self._own: dict[str, Any] = {}
        self._in_try = in_try

    def __getitem__(self, name: Any) -> Any:
        return self._read_variable(name, Variable(_plain_name(name), required=True))

    def get(self, name: Any, default: Any = None) -> Any:
        if isinstance(default, Text | Number) or not isinstance(default, Scalar):
            return self._read_variable(name, None) if name in self else default
        return self._read_variable(name, Variable(_plain_name(name), default))

    getenv = get

    def __contains__(self, name: Any) -> bool:
        name = _plain_name(name)
        return self._own[name] is not None if name in self._own else self._references.is_set(name)

    def __setitem__(self, name: Any, value: Any) -> None:
        name = _plain_name(name)
        if name.startswith(OF_SPARK):
            self._references.refuse(
                f"`os.environ['{name}'] = ...` does not reach Spark: set the variable in the planner's environment."
            )
        self._own[name] = value

    def setdefault(self, name: Any, value: Any) -> Any:
        if name not in self:
            self[name] = value
        return self[name]

    def update(self, *mappings: Any, **values: Any) -> None:
        for key, value in dict(*mappings, **values).items():
            self[key] = value

    def pop(self, name: Any, *default: Any) -> Any:
        value = self.get(name, *default) if default else self[name]
        self._own[_plain_name(name)] = None
        return value

    def __delitem__(self, name: Any) -> None:
        self.pop(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse_all()

    def _refuse_all(self, *_: Any) -> Any:
        self._references.refuse("All environment variables at once decide the configuration here: name those it needs.")

    __iter__ = __len__ = __eq__ = __or__ = __ror__ = __hash__ = _refuse_all

    def _read_variable(self, name: Any, variable: Variable | None) -> Any:
        name = _plain_name(name)
        if name in self._own:
            if self._own[name] is not None:
                return self._own[name]
            if variable is None or variable.required:
                raise KeyError(name)
            return variable.default
        if not NAME.fullmatch(name):
            self._references.refuse("The name of an environment variable is not plain here.")
        if variable is not None and variable.required and not self._references.is_set(name) and self._in_try():
            raise KeyError(name)
        return self._references.refer(variable or Variable(name, required=True))


def _plain_name(name: Any) -> str:
    return str(plain_value(name))


def guard_environment(references: References) -> None:
    """Refuse the file if a package that it imports reads a variable that is set and not known here."""

    class Guarded(os._Environ):  # type: ignore[type-arg]  # Python's own, which is the same one for all packages
        def __getitem__(self, name: str) -> str:
            try:
                return str(super().__getitem__(name))
            except KeyError:
                if references.is_set(name) and not name.startswith((*OF_SPARK, "PYTHON")):
                    return str(references.content(Variable(name)))
                raise

    os.environ.__class__ = Guarded
