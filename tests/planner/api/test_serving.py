"""The socket on which the server of `mergeplan ui` answers."""

from __future__ import annotations

import asyncio
import socket

from mergeplan.planner.api.serving import open_socket


def test_the_second_part_of_an_answer_does_not_wait_for_the_first_ones_acknowledgement() -> None:
    options: asyncio.Queue[int] = asyncio.Queue()

    async def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted: socket.socket = writer.get_extra_info("socket")
        await options.put(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def connect() -> int:
        listener = open_socket("127.0.0.1", 0)
        async with await asyncio.start_server(note, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await options.get()

    assert asyncio.run(connect()) == 1
