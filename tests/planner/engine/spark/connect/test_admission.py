"""What project code may ask of Spark: relations over its own tables, and nothing else."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from pyspark.sql.connect import proto

from mergeplan.planner.engine.spark.connect.admission import Blocks, ReadScope, admit_request
from mergeplan.planner.engine.spark.connect.admitted_fields import FIELDS, PACKAGE
from mergeplan.planner.engine.spark.connect.project_proxy import Malformed, depth_of, message_of
from mergeplan.planner.parsing.sql.queried_tables import NotAdmitted
from tests.planner.asking import SCOPE, SESSION, Asked, run_untrusted
from tests.planner.engine.spark.attacks import ATTACKS, IN_PYTHON, ORDINARY

UNTOLD = {"another session", "a session's double"}  # by the relay alone
NO_PYTHON = replace(SCOPE, python=False)


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in UNTOLD])
def test_a_hostile_request_is_refused_with_its_reason(name: str) -> None:
    code, told = ATTACKS[name]

    with pytest.raises(NotAdmitted) as refused:
        run_untrusted(code)

    assert told in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", [*ORDINARY, *IN_PYTHON])
def test_an_ordinary_request_is_admitted(name: str) -> None:
    with suppress(Asked):
        run_untrusted({**ORDINARY, **IN_PYTHON}[name])


@pytest.mark.parametrize("name", ["udf", "pandas_udf", "cogroup", "udf.register", "udtf"])
def test_functions_in_python_are_refused_where_workers_are_not_isolated(name: str) -> None:
    with pytest.raises(NotAdmitted, match="MERGEPLAN_ISOLATION_UDF=allow"):
        run_untrusted(IN_PYTHON[name], NO_PYTHON)


@pytest.mark.parametrize("frame", ["map_partitions", "group_map", "co_group_map"])
def test_frames_through_python_are_refused_where_workers_are_not_isolated(frame: str) -> None:
    request = relation(**{frame: {"func": {"python_udf": {"command": b"x"}}}})
    admit_request(request, SCOPE)

    with pytest.raises(NotAdmitted, match="MERGEPLAN_ISOLATION_UDF=allow"):
        admit_request(request, NO_PYTHON)


def execute(**fields: Any) -> Any:
    return proto.ExecutePlanRequest(session_id=SESSION, plan=proto.Plan(**fields))


def relation(**fields: Any) -> Any:
    return execute(root=proto.Relation(**fields))


def view(name: str, *, is_global: bool, replace: bool = False) -> Any:
    made = proto.CreateDataFrameViewCommand(name=name, is_global=is_global, replace=replace)
    made.input.range.end = 1
    return execute(command=proto.Command(create_dataframe_view=made))


RAW = {
    "another session": proto.ExecutePlanRequest(session_id=SESSION.replace("1", "2")),
    "no session": proto.ExecutePlanRequest(),
    "a compressed plan": execute(compressed_operation=proto.Plan.CompressedOperation(data=b"x")),
    "a command of an older pyspark": execute(command=proto.Command(sql_command=proto.SqlCommand(sql="DROP TABLE x"))),
    "a command that is no query": execute(
        command=proto.Command(sql_command=proto.SqlCommand(input=proto.Relation(range=proto.Range(end=1))))
    ),
    "a source in Python": relation(common_inline_user_defined_data_source={"name": "x"}),
    "a type with a class": relation(local_relation={"schema": '{"type": "udt", "class": "java.lang.Runtime"}'}),
    "a type with a class, as text": relation(local_relation={"schema": "{'type': 'udt'}"}),
    "a checkpoint of another": relation(cached_remote_relation={"relation_id": "x"}),
    "a table function of the catalog": relation(unresolved_table_valued_function={"function_name": "shop.f"}),
    "a resource profile": relation(map_partitions={"profile_id": 3}),
    "an unknown relation": relation(unknown={}),
    "an extension of a relation": relation(extension={"type_url": "x"}),
    "an extension of a request": proto.ExecutePlanRequest(session_id=SESSION, request_options=[{"extension": {}}]),
    "an extension of a user": proto.ConfigRequest(session_id=SESSION, user_context={"extensions": [{"type_url": "x"}]}),
    "files of a function": relation(map_partitions={"func": {"python_udf": {"additional_includes": ["x.py"]}}}),
    "java in a frame": relation(map_partitions={"func": {"java_udf": {"class_name": "x"}}}),
    "scala in a frame": relation(map_partitions={"func": {"scalar_scala_udf": {"payload": b"x"}}}),
    "another's view": view("mergeplan_b_0", is_global=True),
    "a view that replaces": view("mergeplan_a_0", is_global=True, replace=True),
    "one view too many": view("mergeplan_a_10000", is_global=True),
    "a view with a schema": view("shop.items", is_global=False),
    "a view named as a word of SQL": view("stream", is_global=False),
    "a function named as nothing": execute(
        command=proto.Command(register_function={"function_name": "a.b", "python_udf": {"python_ver": "3"}})
    ),
    "a block that is a file": proto.ArtifactStatusesRequest(session_id=SESSION, names=["files/x"]),
}


@pytest.mark.parametrize("name", RAW)
def test_a_request_that_pyspark_would_not_send_is_refused(name: str) -> None:
    with pytest.raises(NotAdmitted):
        admit_request(RAW[name], SCOPE)


def test_a_models_rows_are_left_in_its_own_views() -> None:
    admit_request(view("mergeplan_a_0", is_global=True), SCOPE)
    admit_request(view("mine", is_global=False, replace=True), SCOPE)

    with pytest.raises(NotAdmitted, match="A global temporary view"):
        admit_request(view("mergeplan_a_0", is_global=True), replace(SCOPE, prefix=""))


def test_sql_is_passed_on_in_parentheses_and_without_comments() -> None:
    request = relation(sql={"query": "SELECT id -- the key\nFROM phys.items;"})

    admit_request(request, SCOPE)

    assert request.plan.root.sql.query == "(SELECT id           \nFROM phys.items \n)"


def test_nothing_is_read_before_something_is_admitted() -> None:
    with pytest.raises(NotAdmitted, match="is not a table that this model reads"):
        admit_request(relation(read={"named_table": {"unparsed_identifier": "phys.items"}}), ReadScope(SESSION))


KINDS = [
    getattr(proto, f"{name}Request")
    for name in ("ExecutePlan", "AnalyzePlan", "Config", "AddArtifacts", "ArtifactStatuses", "Interrupt")
]


def messages() -> Iterator[Descriptor]:
    """Every message that can stand in a request."""
    waiting = [getattr(proto, name).DESCRIPTOR for name in dir(proto) if re.search("[a-z]Request$", name)]
    known: set[str] = set()
    while waiting:
        kind = waiting.pop()
        if kind.full_name not in known:
            known.add(kind.full_name)
            yield kind
            waiting += [field.message_type for field in kind.fields if field.message_type]


def test_the_list_names_what_there_is() -> None:
    there = {kind.full_name.removeprefix(PACKAGE): {field.name for field in kind.fields} for kind in messages()}

    assert {
        name: fields - there.get(name, set()) for name, fields in FIELDS.items() if fields - there.get(name, set())
    } == {}
    assert FIELDS.keys() - there.keys() == set()


def fill(made: Any, chance: random.Random, depth: int = 0) -> None:
    """Put anything into a message."""
    fields = list(made.DESCRIPTOR.fields)
    for field in chance.sample(fields, k=min(len(fields), chance.randint(0, 3))):
        if field.message_type is None or field.message_type.GetOptions().map_entry or depth > 6:
            continue
        held = getattr(made, field.name)
        if not field.is_repeated:
            held.SetInParent()
        fill(held.add() if field.is_repeated else held, chance, depth + 1)


def test_anything_at_all_is_admitted_or_refused() -> None:
    chance = random.Random(7)  # noqa: S311  # a fuzz
    told = set()

    for _ in range(1500):
        request = chance.choice(KINDS)(session_id=SESSION)
        fill(request, chance)
        data = bytearray(request.SerializeToString())
        for _ in range(chance.choice((0, 0, 1, 4))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            admit_request(message_of(type(request), bytes(data)), SCOPE)
        except NotAdmitted as refused:
            told.add(str(refused))

    assert len(told) >= 15


def nest_limits(depth: int) -> bytes:
    """A plan of limits over limits."""
    data = proto.Relation(range=proto.Range(end=1)).SerializeToString()
    for _ in range(depth):
        inner = b"\x0a" + length(len(data)) + data
        data = b"\x42" + length(len(inner)) + inner
    return data


def length(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + length(value >> 7)


def test_a_deep_plan_is_read_and_a_bottomless_one_is_not() -> None:
    assert message_of(proto.Relation, nest_limits(400)).WhichOneof("rel_type") == "limit"
    assert depth_of(proto.Relation.DESCRIPTOR, nest_limits(400)) == 802

    with pytest.raises(NotAdmitted, match="nested too deeply"):
        message_of(proto.Relation, nest_limits(30_000))


@pytest.mark.parametrize("data", [b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f", b"\x0b", b"\x42", nest_limits(80)[:-3]])
def test_bytes_that_are_no_request_are_told(data: bytes) -> None:
    with pytest.raises(Malformed):
        message_of(proto.Relation, data)


def test_a_field_that_nobody_knows_is_refused() -> None:
    with pytest.raises(NotAdmitted, match="does not know"):
        message_of(proto.Relation, b"\xf8\x3f\x01")


def parts(name: str, *data: bytes) -> list[Any]:
    first = proto.AddArtifactsRequest.BeginChunkedArtifact(
        name=name, num_chunks=len(data), initial_chunk={"data": data[0]}
    )
    rest = [proto.AddArtifactsRequest(chunk={"data": chunk}) for chunk in data[1:]]
    return [proto.AddArtifactsRequest(begin_chunk=first), *rest]


NAME = f"cache/{hashlib.sha256(b'abcd').hexdigest()}"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (parts(NAME, b"ab", b"cd"), ""),
        (parts(NAME, b"abcd"), ""),
        (parts(NAME, b"ab", b"ce"), "is not what its name says"),
        (parts("jars/x.jar", b"abcd"), "`addArtifact` is not allowed"),
        (parts("cache/../x", b"abcd"), "`addArtifact` is not allowed"),
        (parts(NAME, b"ab", b"cd")[1:], "is not a block of rows"),
        ([parts(NAME, b"ab", b"cd")[0], *parts(NAME, b"abcd")], "was not sent to its end"),
        ([proto.AddArtifactsRequest()], "is not a block of rows"),
    ],
)
def test_the_rows_of_a_large_frame_are_sent_in_blocks_and_nothing_else_is(sent: list[Any], told: str) -> None:
    blocks = Blocks()
    try:
        for part in sent:
            blocks.admit(part)
    except NotAdmitted as refused:
        assert told
        assert told in str(refused)
    else:
        assert not told
