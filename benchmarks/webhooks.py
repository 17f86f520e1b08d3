"""How many webhooks the service takes in for good: latency at a fixed rate, rate at full speed. Prints ratios.

make bench-webhooks                               SQLite; 500 a second, then as fast as it goes
python -m benchmarks.webhooks postgresql://...    the same on a PostgreSQL, whose tables it fills

The service is a process of its own behind uvicorn; the bodies are those that a sandbox sends, filled up to the sizes of
GitHub's own. Each delivery is answered when it is durable; afterwards every GUID that was answered is looked for.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import sqlalchemy as sa
import uvicorn

from mergeplan.bot.context import BotContext
from mergeplan.bot.github.events import sign_body
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.tables import DELIVERIES
from mergeplan.bot.service.app import create_app
from mergeplan.bot.service.connections import Limits, server_config
from mergeplan.bot.service.logs import start_logging
from mergeplan.bot.settings import load_settings
from mergeplan.planner.cli.main import raise_gc_threshold
from mergeplan_sandbox.server import Sandbox

SECRET = "a-webhook-secret"  # noqa: S105 - of this benchmark
RATE, SECONDS, CONNECTIONS, REPOSITORIES, PULLS = 500, 10, 64, 20, 15
SIZES = {"pull_request": 24_000, "issue_comment": 13_000, "push": 9_000, "check_run": 14_000}  # bytes, as GitHub's are
SHARES = {"pull_request": 4, "issue_comment": 3, "push": 2, "check_run": 3}
TICKS = os.sysconf("SC_CLK_TCK")


# --- the service ---


def serve(descriptor: str, url: str, most: str) -> None:
    """The service's door over one inbox, without its worker; `most` deliveries share a commit."""
    raise_gc_threshold()  # as `mergeplan serve` does
    settings = load_settings()
    start_logging(settings)
    context = BotContext(settings, Inbox(url), GitHub(settings), "nobody")
    app = create_app(context, Limits(group=int(most)))
    listening = socket.socket(fileno=int(descriptor))
    uvicorn.Server(server_config(app, "127.0.0.1", 0)).run(sockets=[listening])
    context.inbox.close()


@dataclass
class Service:
    """A running service and what it has taken."""

    port: int
    pid: int

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def service(folder: Path, url: str, most: int) -> Iterator[Service]:
    """The service in a process of its own, ended afterwards."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as door, (folder / "service.log").open("ab") as log:
        port = door.getsockname()[1]
        environ = {**os.environ, "MERGEPLAN_WEBHOOK_SECRET": SECRET, "MERGEPLAN_HOME": str(folder)}
        argv = [sys.executable, "-m", "benchmarks.webhooks", "--serve", str(door.fileno()), url, str(most)]
        process = subprocess.Popen(argv, env=environ, stderr=log, pass_fds=[door.fileno()])
        try:
            yield Service(port, process.pid)
        finally:
            process.terminate()
            process.wait(60)


# --- the load ---


def bodies() -> list[tuple[str, dict[str, Any]]]:
    """One webhook of each sort, as a sandbox sends it, filled up to the size of GitHub's."""
    with Sandbox(webhook_url="http://127.0.0.1:9/") as github:
        github.add_user("ann")
        github.create_repository("ann/shop", {"models/orders.sql": "SELECT 1 AS id\n"})
        github.install_app("ann/shop")
        github.commit("ann/shop", "more", {"models/orders.sql": "SELECT 2 AS id\n"}, "More", author="ann")
        number = github.open_pull_request("ann/shop", "more", "main", "More", author="ann")
        github.comment("ann/shop", number, "Looks good to me.", author="ann")
        github.wait_idle()
        payloads = {delivery.event: delivery.payload for delivery in github.deliveries}
    head = payloads["pull_request"]["pull_request"]["head"]["sha"]
    shared = {name: payloads["push"][name] for name in ("repository", "sender", "installation")}
    check = {"id": 1, "head_sha": head, "pull_requests": [{"number": number}]}
    payloads["check_run"] = {"action": "rerequested", "check_run": check, **shared}
    for event, size in SIZES.items():
        room = size - len(json.dumps(payloads[event]))
        links = {f"link_{n}": f"https://api.github.com/repos/ann/shop/things/{n}{{/thing}}" for n in range(room // 75)}
        payloads[event]["repository"] = {**payloads[event]["repository"], "more": links}
    return [(event, payloads[event]) for event, share in SHARES.items() for _ in range(share)]


@dataclass
class Load:
    """Signed requests, ready to be sent."""

    requests: list[tuple[str, bytes]] = field(default_factory=list)

    def fill(self, count: int) -> None:
        """So many more, spread over repositories and pull requests, each with a GUID of its own."""
        choose, kinds = random.Random(len(self.requests)), bodies()  # noqa: S311 - reproducible, not secret
        for _ in range(count):
            event, payload = choose.choice(kinds)
            self.requests.append(_request(event, payload, choose))

    def renew(self) -> None:
        """The same requests as other deliveries."""
        fresh = [(str(uuid4()), guid, request) for guid, request in self.requests]
        self.requests = [(new, request.replace(old.encode(), new.encode(), 1)) for new, old, request in fresh]


def _request(event: str, payload: dict[str, Any], choose: random.Random) -> tuple[str, bytes]:
    number, name = choose.randint(1, PULLS), f"ann/shop{choose.randint(1, REPOSITORIES)}"
    told = {**payload, "repository": {**payload["repository"], "full_name": name}}
    if event == "pull_request":
        told |= {"action": "synchronize", "pull_request": {**payload["pull_request"], "number": number}}
    if event == "issue_comment":
        text = "/plan" if choose.random() < 0.2 else "Looks good to me, but who reads this column?"
        told["issue"] = {**payload["issue"], "number": number}
        told["comment"] = {**payload["comment"], "id": choose.randint(1, 2**40), "body": text}
    guid, body = str(uuid4()), json.dumps(told).encode()
    fields = {
        "Host": "bot", "User-Agent": "GitHub-Hookshot/1", "Accept": "*/*", "Content-Type": "application/json",
        "X-GitHub-Delivery": guid, "X-GitHub-Event": event, "X-GitHub-Hook-ID": "1",
        "X-GitHub-Hook-Installation-Target-ID": "1001", "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature-256": sign_body(SECRET, body), "Content-Length": str(len(body)),
    }  # fmt: skip
    head = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
    return guid, f"POST /webhook HTTP/1.1\r\n{head}\r\n".encode() + body


class Caller(asyncio.Protocol):
    """One kept connection: a request, its answer, the next request."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[int] | None = None
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, separator, rest = self._seen.partition(b"\r\n\r\n")
        if not separator or self._answer is None:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) >= length:
            self._seen = b""
            self._answer.set_result(int(head[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(0)

    async def send(self, request: bytes) -> int:
        """The status of the answer, 0 when there was none."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer


@dataclass
class Taken:
    """What came of a load: seconds of each answer since it was to be sent, and the GUIDs that were answered 2xx."""

    seconds: list[float] = field(default_factory=list)
    guids: list[str] = field(default_factory=list)
    took: float = 0.0


async def send(port: int, requests: Sequence[tuple[str, bytes]], rate: float) -> Taken:
    """Sends at a rate, whatever the answers take; or (0) each connection sends its next at once."""
    loop, taken = asyncio.get_running_loop(), Taken()
    callers = [(await loop.create_connection(Caller, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    queue: asyncio.Queue[tuple[float, str, bytes] | None] = asyncio.Queue()
    began = loop.time() + 0.05

    async def work(caller: Caller) -> None:
        while (item := await queue.get()) is not None:
            due, guid, request = item
            due = due if rate else loop.time()
            if 200 <= await caller.send(request) < 300:
                taken.guids.append(guid)
            taken.seconds.append(loop.time() - due)

    workers = [asyncio.create_task(work(caller)) for caller in callers]
    for index, (guid, request) in enumerate(requests):
        due = began + index / rate if rate else 0.0
        if (wait := due - loop.time()) > 0.001:
            await asyncio.sleep(wait)
        queue.put_nowait((due, guid, request))
    for _ in workers:
        queue.put_nowait(None)
    await asyncio.gather(*workers)
    taken.took = loop.time() - began
    return taken


# --- what is printed ---


@dataclass(frozen=True)
class Result:
    """One run of the load."""

    rate: float
    p50: float
    p99: float
    cpu: float
    lost: int

    def __str__(self) -> str:
        times = f"p50 {self.p50 * 1000:6.1f} ms   p99 {self.p99 * 1000:7.1f} ms"
        return f"{self.rate:7.0f}/s   {times}   {self.cpu * 1000:5.2f} CPU ms each   {self.lost} lost"


def measure_load(folder: Path, url: str, most: int, load: Sequence[tuple[str, bytes]], rate: float) -> Result:
    """One load on one service."""
    with service(folder, url, most) as running:
        asyncio.run(send(running.port, load[:200], 0))  # warm
        before = running.cpu()
        taken = asyncio.run(send(running.port, load[200:], rate))
        cpu = running.cpu() - before
    cuts = statistics.quantiles(taken.seconds, n=100)
    count = len(load) - 200
    return Result(count / taken.took, cuts[49], cuts[98], cpu / count, len(lost_deliveries(url, taken.guids)))


def lost_deliveries(url: str, guids: Sequence[str]) -> set[str]:
    """The GUIDs that were answered 2xx and are not in the inbox."""
    database = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with database.connect() as connection:
        known = set(connection.execute(sa.select(DELIVERIES.c.guid)).scalars())
    database.dispose()
    return set(guids) - known


def main(url: str) -> None:
    """One commit for each delivery and shared commits, by turns."""
    load = Load()
    load.fill(200 + RATE * SECONDS)
    results: dict[tuple[str, int], list[Result]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(3):
            for most in (1, Limits().group):
                for name, rate in (("500 a second", float(RATE)), ("full speed", 0.0)):
                    folder = Path(scratch) / f"{turn}-{most}-{name[:3]}"
                    folder.mkdir()
                    result = measure_load(folder, url or f"sqlite:///{folder}/bot.db", most, load.requests, rate)
                    results.setdefault((name, most), []).append(result)
                    print(f"{name:13} {'shared commits' if most > 1 else 'a commit each':14} {result}", flush=True)
                    load.renew()
    for name in ("500 a second", "full speed"):
        one, many = (results[name, most] for most in (1, Limits().group))
        cpu, p99, rate = (
            statistics.median(getattr(b, key) / getattr(a, key) for a, b in zip(one, many, strict=True))
            for key in ("cpu", "p99", "rate")
        )
        print(f"{name}: shared commits against a commit each: CPU x {cpu:.2f}, p99 x {p99:.2f}, rate x {rate:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:5])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
