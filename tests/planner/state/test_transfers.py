"""The state as one document: what goes out comes in again, and nothing else does."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mergeplan.planner.engine.protocol import Operation
from mergeplan.planner.errors import LeaseHeld, Refused, RequestError
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import Naming, Suffix
from mergeplan.planner.snapshot.content_hash import WHOLE, Content, Contents
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.environments import Cause
from mergeplan.planner.state.operations import RunningWrite
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days, environment, snapshot

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
ID = (Column("id", "int"),)
A1, A2, B1 = snapshot("s.a", "v1"), snapshot("s.a", "v2"), replace(snapshot("s.b"), stored="other.b__v1")


def promote(store: StateStore, name: str, *snapshots: Snapshot) -> None:
    for version in snapshots:
        store.tables.register(version.table, ID)
        store.intervals.record(version.table, days(1, 3))
    new = replace(environment(name, *snapshots), naming=Naming(suffix=Suffix.TABLE), expires_at=days(9, 9).start)
    with store.leases.hold(name, "ann") as lease:
        promotion = store.promotions.begin(lease, store.environments.get(name), new, Cause(plan_id="p"))
        store.promotions.finish(lease, promotion)


@pytest.fixture
def other(state_url: str) -> Iterator[StateStore]:
    """Another project, empty."""
    opened = StateStore(state_url, uuid.uuid4().hex)
    yield opened
    opened.close()


@pytest.fixture
def document(store: StateStore) -> Any:
    """A state with two environments, as it is read from a file."""
    promote(store, "prod", A1, B1)
    promote(store, "dev", A2, B1)
    return json.loads(json.dumps(store.transfers.export()))


def test_a_state_that_is_imported_is_the_one_that_was_exported(
    store: StateStore, other: StateStore, document: Any
) -> None:
    assert other.transfers.load(document) == ("dev", "prod")

    assert other.environments.all() == store.environments.all()
    assert other.environments.history() == store.environments.history()
    assert other.intervals.load_timelines([A1.table, B1.table]) == store.intervals.load_timelines([A1.table, B1.table])
    assert other.transfers.export()["tables"] == document["tables"]


def test_one_environment_comes_with_its_own_tables_only(store: StateStore, other: StateStore, document: Any) -> None:
    only = store.transfers.export(["dev"])

    other.transfers.load(json.loads(json.dumps(only)))

    assert [target.name for target in other.environments.all()] == ["dev"]
    assert set(other.tables.all()) == {A2.table, "other.b__v1"}
    assert other.intervals.load_timelines([A1.table, A2.table]) == {A1.table: (), A2.table: (days(1, 3),)}
    with pytest.raises(RequestError, match="There is no environment `qa`"):
        store.transfers.export(["qa"])


def test_a_whole_document_brings_the_id_of_its_state_and_one_of_an_environment_does_not(
    store: StateStore, other: StateStore, document: Any
) -> None:
    state_id = store.tables.owner()
    other.transfers.load(store.transfers.export(["dev"]))
    assert other.tables.owner() != state_id

    other.transfers.load(store.transfers.export(), replace=True)
    assert other.tables.owner() == state_id
    other.transfers.load(document, replace=True)  # of a version without IDs
    assert other.tables.owner() == state_id


def test_a_document_neither_brings_nor_leaves_what_is_known_of_rows(store: StateStore, document: Any) -> None:
    """The tables may have been written since it was made."""
    with store.leases.hold(f"table:{A1.table}", "ann") as lease:
        store.contents.record(A1.table, {("id",): {WHOLE: Content(7, "e" * 32)}}, lease=lease)
        store.contents.record_inputs(A1.table, "a" * 32, lease=lease)
    store.passed_audits.record(A1.table, "f" * 64)
    exported = store.transfers.export()
    contents = [{"table_name": A1.table, "columns": "x", "period": "", "start_at": None, "rows": 1, "hash": "e" * 32}]
    # As an earlier version wrote them:
    document["tables"] |= {"contents": contents, "passed_audits": [{"table_name": A1.table, "audit": "f" * 64}]}
    store.transfers.load(document, replace=True)

    assert not {"contents", "passed_audits"} & exported["tables"].keys()
    assert not store.passed_audits.names_for(A1.table)
    assert store.contents.load_inputs(A1.table) == ""
    assert store.contents.load([A1.table]) == {A1.table: Contents()}


def test_a_state_that_is_replaced_forgets_writes_that_a_server_goes_on_with(store: StateStore, document: Any) -> None:
    write = RunningWrite(Operation("sc://spark", "session", uuid.uuid4().hex), days(1, 2).start, "a" * 32, 1)
    with store.leases.hold(f"table:{A1.table}", "ann") as lease:
        store.running_writes.begin(A1.table, write, lease=lease)
    store.transfers.load(document, replace=True)

    assert store.running_writes.list_unfinished(A1.table) == ()


def test_what_is_known_is_not_overwritten_unless_it_is_to_be_replaced(store: StateStore, document: Any) -> None:
    promote(store, "prod", A2)

    with pytest.raises(Refused, match="The state knows `dev` already"):
        store.transfers.load(document)
    store.transfers.load(document, replace=True)

    assert store.environments.get("prod").snapshots["s.a"] == A1
    assert store.environments.get("prod").revision == 1


def test_nothing_is_imported_while_somebody_works(store: StateStore, document: Any) -> None:
    with store.leases.hold("prod", "ann"), pytest.raises(LeaseHeld, match="`prod` is being changed by ann"):
        store.transfers.load(document, replace=True)

    assert len(store.environments.all()) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"mergeplan_state": 2}, "The document is of a newer form (2). Install the newer mergeplan."),
        ({"schema": "r9999"}, "The document is of a newer version (r9999) than this mergeplan. Install"),
        ({"project": 1}, "This is no state that was exported: `project`: Input should be a valid string."),
        ({"tables": {"leases": []}}, "This is no state that was exported: nothing is called `leases`."),
        ({"tables": {"intervals": [{"x": 1}]}}, "`intervals`, row 1: there is no column `x`."),
        ({"tables": {"intervals": [{"start_at": "?"}]}}, "`intervals`, row 1: `table_name` is missing."),
        ({"tables": {"environments": [{"name": 1}]}}, "`environments`, row 1: `name` cannot be '1'."),
    ],
)
def test_a_document_that_is_none_is_refused_and_changes_nothing(
    other: StateStore, document: Any, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(RequestError) as error:
        other.transfers.load(document | change)

    assert str(error.value).startswith(told)
    assert other.environments.all() == ()
