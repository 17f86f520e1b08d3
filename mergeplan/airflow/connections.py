"""Read the state's URL from an Airflow connection when a task runs, and never while a DAG is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from mergeplan.airflow.place import Place

if TYPE_CHECKING:
    from mergeplan.airflow.state import StateReader

PRODUCER = "run"  # the task that computes what is due


def run_key(dag_id: str, run_id: str, producer: str) -> str:
    """Return the id under which mergeplan records what a DAG run computes: one for each task that computes."""
    group = producer.removesuffix(PRODUCER).removesuffix(".")
    return f"{dag_id}/{run_id}/{group}" if group else f"{dag_id}/{run_id}"


def open_reader(place: Place, state_url: str) -> StateReader:
    """Return the reader of a place's state and import its modules only now.

    A DAG is parsed without them, and a triggerer imports them outside its event loop.
    """
    from mergeplan.airflow.state import state_reader

    return state_reader(place, state_url)


def state_url_of(place: Place) -> str:
    """Return the state's URL for a task; "" if no connection is named."""
    return _url(BaseHook.get_connection(place.state_conn_id)) if place.state_conn_id else ""


async def find_state_url(place: Place) -> str:
    """Return the state's URL for a trigger; "" if no connection is named."""
    return _url(await BaseHook.aget_connection(place.state_conn_id)) if place.state_conn_id else ""


def _url(connection: Any) -> str:
    return str(connection.extra_dejson.get("url") or connection.get_uri())
