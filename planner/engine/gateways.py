"""Several gateways that see the same tables: each table is computed on the Spark that its model names.

Whatever concerns the catalog (schemas, views, drops) is done on the project's own gateway: all of them see it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any, cast

from planner.engine.protocol import Engine, Table

READING = ("create_table", "contents")  # after these nobody has anything to forget


class Gateways:
    """The project's own engine, which hands whatever is about a `Table` on to the engine of the table's gateway.

    What one Spark has written another may remember otherwise: each of the others that is open is told to forget.
    """

    def __init__(self, own: Engine, same: Collection[str], open_other: Callable[[str], Engine]) -> None:
        self._own, self._same, self._open_other = own, {"", *same}, open_other
        self._others: dict[str, Engine] = {}
        self._lock = threading.RLock()

    def of(self, gateway: str) -> Engine:
        """The engine of a gateway, opened when it is first asked for; '' is the project's own."""
        if gateway in self._same:
            return self._own
        with self._lock:
            if gateway not in self._others:
                self._others[gateway] = self._open_other(gateway)
            return self._others[gateway]

    def jobs(self) -> int:
        """Those of all gateways."""
        return sum(engine.jobs() for engine in self._open())

    def cancel(self) -> None:
        """End what runs on any gateway."""
        for engine in self._open():
            engine.cancel()

    def close(self) -> None:
        """Let go of every gateway, the others first."""
        for engine in reversed(self._open()):
            engine.close()

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._own, name)
        return self._on_the_tables_gateway(name, verb) if callable(verb) else verb

    def _on_the_tables_gateway(self, name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        """The verb; one that is handed a Table is its gateway's."""

        def run(*arguments: Any, **named: Any) -> Any:
            table = arguments[0] if arguments else None
            if not isinstance(table, Table):
                return own(*arguments, **named)
            writer = self.of(table.gateway)
            done = getattr(writer, name)(*arguments, **named)
            for engine in self._open():
                if engine is not writer and name not in READING:
                    engine.refresh(table.name)
            return done

        return run

    def _open(self) -> list[Engine]:
        return [self._own, *self._others.values()]


def routed(own: Engine, same: Collection[str], open_other: Callable[[str], Engine]) -> Engine:
    """An engine for a project whose models may name several gateways; `same` are names of its own."""
    return cast(Engine, Gateways(own, same, open_other))


def engine_of(engine: Engine, gateway: str) -> Engine:
    """The engine that a model of this gateway is evaluated on."""
    return engine.of(gateway) if isinstance(engine, Gateways) else engine
