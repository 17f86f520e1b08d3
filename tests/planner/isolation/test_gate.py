"""The connections of a confined process: its own ports, the allowed addresses and folders, and nothing else."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.addresses import AllowedAddress, StandIns, parse_addresses, unwrap_ipv4
from mergeplan.planner.isolation.gate import ConnectionGate
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.probe import cannot_confine
from mergeplan.planner.isolation.profile import IsolationProfile
from mergeplan.planner.isolation.seccomp import Network

TRY = """
import json, socket, sys
def reach(family, address):
    with socket.socket(family) as line:
        line.settimeout(20)
        try:
            line.connect(tuple(address) if isinstance(address, list) else address)
            return "reached"
        except OSError as error:
            return type(error).__name__
print(json.dumps([reach(family, address) for family, address in json.loads(sys.argv[1])]))
"""
V4, V6, UNIX = int(socket.AF_INET), int(socket.AF_INET6), int(socket.AF_UNIX)
ANY = "0.0.0.0"  # noqa: S104  # as a target it is this machine
Place = tuple[int, object]
confines = pytest.mark.skipif(bool(cannot_confine()), reason=f"this machine cannot confine: {cannot_confine()}")


@pytest.fixture(name="ports")
def _ports() -> Iterator[tuple[int, int]]:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        yield first.getsockname()[1], second.getsockname()[1]


def try_all(gate: ConnectionGate, folder: Path, places: list[Place]) -> list[str]:
    """What a confined process reaches of these places."""
    read = (*libraries(sys.executable, {}, "-I", "-S"), "/proc")
    profile = IsolationProfile(read, (str(folder),), Network.LISTED, own_user=False, limited=False)
    command = [sys.executable, "-I", "-S", "-c", TRY, json.dumps(places)]
    with subprocess.Popen(
        profile.listening(gate.descriptor).launch_command(command),
        stdout=subprocess.PIPE,
        pass_fds=[gate.descriptor],
        cwd="/",
    ) as process:
        gate.process = process.pid
        gate.start()
        said: list[str] = json.loads(process.communicate(timeout=60)[0])
    return said


@confines
def test_an_allowed_port_is_reached_by_address_and_by_name_and_no_other_is(
    ports: tuple[int, int], tmp_path: Path
) -> None:
    allowed, other = ports
    refused: list[str] = []
    gate = ConnectionGate(parse_addresses(f"127.0.0.0/8:{allowed},localhost:{allowed}", "X"), (), refused.append)

    said = try_all(
        gate,
        tmp_path,
        [
            (V4, ["127.0.0.1", allowed]), (V6, ["::ffff:127.0.0.1", allowed]), (V4, ["198.18.0.1", allowed]),
            (V4, ["127.0.0.1", other]), (V6, ["::ffff:127.0.0.1", other]), (V4, ["198.18.0.1", other]),
            (V4, ["198.18.0.2", allowed]), (V4, [ANY, other]), (V6, ["::1", other]),
        ],
    )  # fmt: skip

    assert said == ["reached"] * 3 + ["PermissionError"] * 6
    assert f"localhost:{other}" in refused


@confines
def test_a_socket_is_reached_in_an_allowed_folder_and_through_no_link(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    with ExitStack() as stack:
        for folder in (own, other):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(folder / "s"))
            server.listen()
        (own / "link").symlink_to(other / "s")
        (own / "folder").symlink_to(other)
        places: list[Place] = [
            (UNIX, str(path)) for path in (own / "s", other / "s", own / "link", own / "folder" / "s", own / "none")
        ]
        said = try_all(ConnectionGate((), (own,), lambda address: None), own, places)

    assert said == ["reached", *["PermissionError"] * 3, "FileNotFoundError"]


@confines
def test_what_is_allowed_for_the_start_is_closed_after_it(ports: tuple[int, int], tmp_path: Path) -> None:
    gate = ConnectionGate((), (), lambda address: None, parse_addresses(f"127.0.0.1:{ports[0]}", "X"))
    gate.close_start()

    assert try_all(gate, tmp_path, [(V4, ["127.0.0.1", ports[0]])]) == ["PermissionError"]


def test_a_list_of_addresses_holds_names_networks_and_ports() -> None:
    text = "Db.internal:5432, s3.eu-1.amazonaws.com, 10.1.0.0/16:9000, [fd00::/8]:443, "

    addresses = parse_addresses(text, "X")

    assert addresses == (
        AllowedAddress("db.internal", 5432),
        AllowedAddress("s3.eu-1.amazonaws.com"),
        AllowedAddress("10.1.0.0/16", 9000),
        AllowedAddress("fd00::/8", 443),
    )
    assert addresses[2].includes(unwrap_ipv4("::ffff:10.1.2.3"), 9000)
    assert not addresses[2].includes(unwrap_ipv4("10.1.2.3"), 9001)
    assert StandIns.build(addresses).hosts_file(["localhost"]).splitlines() == [
        "127.0.0.1 localhost",
        "198.18.0.1 db.internal",
        "198.18.0.2 s3.eu-1.amazonaws.com",
    ]


@pytest.mark.parametrize("text", ["http://db", "db:x", "db:99999", "a b", "-x:1", "[db]:1:2", "*.internal"])
def test_what_is_no_address_is_refused_with_the_variable(text: str) -> None:
    with pytest.raises(RequestError, match="X holds `"):
        parse_addresses(f"db:1,{text}", "X")
