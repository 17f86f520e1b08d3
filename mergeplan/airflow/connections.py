"""The state's URL from an Airflow connection, asked for when a task runs and never while a DAG is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from mergeplan.airflow.place import Place

if TYPE_CHECKING:
    from mergeplan.airflow.state import StateReader

PRODUCER = "run"  # the task that computes what is due


def run_key(dag_id: str, run_id: str, producer: str) -> str:
    """The id under which mergeplan records what a DAG run computes: one for each task that computes."""
    group = producer.removesuffix(PRODUCER).removesuffix(".")
    return f"{dag_id}/{run_id}/{group}" if group else f"{dag_id}/{run_id}"


def open_reader(place: Place, state_url: str) -> StateReader:
    """The reader of a place's state. What it needs is imported only now: a DAG is parsed without it, and a triggerer
    imports it beside its event loop."""
    from mergeplan.airflow.state import state_reader

    return state_reader(place, state_url)


def state_url_of(place: Place) -> str:
    """The state's URL, for a task; "" where no connection is named."""
    return _url(BaseHook.get_connection(place.state_conn_id)) if place.state_conn_id else ""


async def find_state_url(place: Place) -> str:
    """The state's URL, for a trigger; "" where no connection is named."""
    return _url(await BaseHook.aget_connection(place.state_conn_id)) if place.state_conn_id else ""


def _url(connection: Any) -> str:
    """`url` of the connection's extra, or the connection itself as a URL."""
    return str(connection.extra_dejson.get("url") or connection.get_uri())
