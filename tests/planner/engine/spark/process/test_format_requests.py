"""Requests for table formats: who is let in, who waits, and what is answered."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import Owner, spark_folder
from mergeplan.planner.engine.spark.open_session import starts_again
from mergeplan.planner.engine.spark.process.format_requests import (
    FormatRequest,
    Visit,
    accept_request,
    is_empty,
    is_waited_for,
    jars_of,
    lacks_formats,
    latest_accepted_request,
    next_request,
    refuse_request,
    request_formats,
)
from mergeplan.planner.errors import CatalogBusy, RequestError

CONF = (("spark.jars.repositories", "here"), ("spark.sql.ansi.enabled", "true"))
DELTA = Connection(formats=("delta",), jars_dir="/jars", conf=CONF)

WARM = Owner(os.getpid(), "mergeplan warm", port=1)


def answer_request(folder: Path) -> tuple[Path, FormatRequest]:
    while (request := next_request(folder)) is None:
        pass
    return request


def test_a_spark_lacks_what_it_was_not_started_with() -> None:
    owner = replace(WARM, formats=("delta",), jars=jars_of(DELTA))

    assert not lacks_formats(owner, Connection(jars_dir="/any"))
    assert not lacks_formats(owner, DELTA)
    assert lacks_formats(owner, replace(DELTA, apart=("iceberg",)))
    assert lacks_formats(owner, replace(DELTA, jars_dir="/newer")), "a release that the project has changed"


def test_whoever_waits_for_another_start_is_told(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path)
    folder.mkdir(parents=True)
    with socket.create_server(("localhost", 0)) as server:
        owner = replace(WARM, port=server.getsockname()[1], formats=("delta",), jars=jars_of(DELTA))
        (folder / "owner.json").write_text(json.dumps(asdict(owner)))

        assert not starts_again(DELTA, tmp_path)
        assert starts_again(replace(DELTA, formats=("delta", "iceberg")), tmp_path)
        assert not starts_again(replace(DELTA, formats=("iceberg",), remote="sc://there"), tmp_path)
    assert not starts_again(replace(DELTA, formats=("iceberg",)), tmp_path), "nobody serves"


def test_a_request_says_formats_and_where_jars_come_from_and_nothing_else(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(request_formats, tmp_path, WARM, DELTA)
        path, request = answer_request(tmp_path)
        assert request == FormatRequest(("delta",), (), "/jars", CONF[:1])
        assert path.stat().st_mode & 0o777 == 0o600
        accept_request(tmp_path, path, request)
        asking.result(timeout=30)

    assert latest_accepted_request(tmp_path) == request
    started = request.extend_connection(
        Connection(formats=("iceberg",), conf=(("spark.jars.packages", "old"), ("a", "b")))
    )
    assert (started.formats, started.conf) == (("delta", "iceberg"), (("a", "b"), CONF[0]))
    assert jars_of(started) == jars_of(DELTA), "whoever asked finds what it asked for"


def test_a_request_that_cannot_be_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(request_formats, tmp_path, WARM, DELTA)
        refuse_request(answer_request(tmp_path)[0], RequestError("no jar.", hint="Bring one."))

        with pytest.raises(RequestError, match=r"no jar\.") as caught:
            asking.result(timeout=30)

    assert caught.value.hint == "Bring one."
    assert (next_request(tmp_path), latest_accepted_request(tmp_path)) == (None, FormatRequest())


def test_whoever_waits_too_long_takes_the_request_back(tmp_path: Path) -> None:
    with pytest.raises(CatalogBusy, match="has to start again for tables of delta, and others still use it"):
        request_formats(tmp_path, WARM, DELTA, wait=0.2)

    assert next_request(tmp_path) is None


def test_nobody_waits_for_a_warm_spark_that_died(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()

    request_formats(tmp_path, replace(WARM, pid=dead.pid), DELTA)

    assert next_request(tmp_path) is None


def test_a_request_of_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    """Nobody is kept out of the warm Spark for it."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(request_formats, tmp_path, WARM, DELTA)
        path, _ = answer_request(tmp_path)
        assert is_waited_for(path)
        left = path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
        path.rename(left)
        asking.result(timeout=30)

    assert not is_waited_for(left)
    assert next_request(tmp_path) is None
    assert not left.exists()


def test_a_request_that_cannot_be_read_is_removed(tmp_path: Path) -> None:
    (tmp_path / "format_requests").mkdir()
    (tmp_path / "format_requests/1-1-a.json").write_text('{"formats": 3')

    assert next_request(tmp_path) is None
    assert list((tmp_path / "format_requests").iterdir()) == []


def test_nobody_is_there_when_all_visits_have_ended(tmp_path: Path) -> None:
    one, two = Visit(tmp_path), Visit(tmp_path)
    one.close()
    assert not is_empty(tmp_path)

    two.close()

    assert is_empty(tmp_path)
