"""Engines that are another one but for the verbs that a test gives them."""

from __future__ import annotations

from typing import Any


class Double:
    """The engine that it is given; a verb of an engine, its tables or its catalog that a subclass has goes before."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._engine, verb)

    def engine_for(self, gateway: str) -> Any:
        """Whatever is computed, it is computed here."""
        return self

    @property
    def tables(self) -> Any:
        """The physical tables."""
        return _Verbs(self, self._engine.tables)

    @property
    def catalog(self) -> Any:
        """The schemas and views."""
        return _Verbs(self, self._engine.catalog)


class _Verbs:
    def __init__(self, double: Double, inner: Any) -> None:
        self._double, self._inner = double, inner

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._double if hasattr(type(self._double), verb) else self._inner, verb)
