"""The addresses that an operator allows: hosts, addresses and networks, each with a port or without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from mergeplan.planner.errors import RequestError

IpAddress = IPv4Address | IPv6Address
STAND_INS = int(IPv4Address("198.18.0.1"))  # a range that no network routes (RFC 2544)
MOST = 1000  # names
HOST = re.compile(r"(?!-)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
ENTRY = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\s\[\]]+))(?::(?P<port>\d{1,5}|\*))?")


@dataclass(frozen=True)
class AllowedAddress:
    """A host by its name, or a network by its addresses; port 0 for every port."""

    host: str
    port: int = 0

    def includes(self, address: IpAddress, port: int) -> bool:
        """Return True for an address and a port of this network; never for a host that has a name."""
        network = None if self.is_name else ip_network(self.host, strict=False)
        return network is not None and address in network and self.port in (0, port)

    @property
    def is_name(self) -> bool:
        """True when the host has to be looked up."""
        try:
            ip_network(self.host, strict=False)
        except ValueError:
            return True
        return False


def parse_addresses(text: str, variable: str) -> tuple[AllowedAddress, ...]:
    """Return the addresses of a comma-separated list; raise RequestError, which names the variable and the entry.

    >>> parse_addresses("db.internal:5432, 10.1.0.0/16, [fd00::1]:443", "X")[:2]
    (AllowedAddress(host='db.internal', port=5432), AllowedAddress(host='10.1.0.0/16', port=0))
    """
    return tuple(_parse_address(entry.strip(), variable) for entry in text.split(",") if entry.strip())


def _parse_address(entry: str, variable: str) -> AllowedAddress:
    match = ENTRY.fullmatch(entry)
    host, port = ((match["six"] or match["host"]), match["port"] or "*") if match else ("", "*")
    number = 0 if port == "*" else int(port)
    address = AllowedAddress(host.lower().rstrip("."), number)
    if not host or number > 65_535 or (address.is_name and not HOST.fullmatch(host)):
        hint = "Write `db.internal:5432`, `10.1.0.0/16` or `[fd00::1]:443`, separated by commas."
        raise RequestError(f"{variable} holds `{entry}`, which is no address.", hint=hint)
    return address


@dataclass(frozen=True)
class StandIns:
    """An address for each allowed name, so that a process that may connect to names needs no name server.

    A name server would learn whatever is written into the names that it looks up.
    """

    names: tuple[str, ...]

    @classmethod
    def build(cls, addresses: Iterable[AllowedAddress]) -> StandIns:
        return cls(tuple(dict.fromkeys(address.host for address in addresses if address.is_name))[:MOST])

    def name(self, address: IpAddress) -> str:
        """Return the name that an address represents; '' for any other address."""
        number = int(address) - STAND_INS
        return self.names[number] if address.version == 4 and 0 <= number < len(self.names) else ""

    def hosts_file(self, own: Iterable[str]) -> str:
        """Return all names in the format of a hosts file; `own` are those of this machine."""
        lines = [f"127.0.0.1 {' '.join(own)}"]
        lines += [f"{IPv4Address(STAND_INS + at)} {name}" for at, name in enumerate(self.names)]
        return "".join(f"{line}\n" for line in lines)


def unwrap_ipv4(text: str) -> IpAddress:
    """Return an address, with IPv4 unwrapped from IPv6; raise ValueError for another text."""
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
