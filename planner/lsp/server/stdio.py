"""The server on standard input and output."""

import os
import sys
from typing import BinaryIO

from mergeplan.planner.lsp.server import commands, features
from mergeplan.planner.lsp.server.server import Server
from mergeplan.planner.session.settings import SessionSettings


def make_server(settings: SessionSettings) -> Server:
    server = Server(settings)
    for add in (
        features.add_documents,
        features.add_lenses,
        features.add_writing,
        features.add_navigation,
        features.add_edits,
        features.add_outline,
        commands.add_commands,
    ):
        add(server)
    return server


def serve_stdio(settings: SessionSettings) -> None:
    """Answer on standard input and output until the client is gone; other output goes to standard error."""
    answers: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = make_server(settings)
    try:
        server.start_io(sys.stdin.buffer, answers)
    finally:
        server.desk.close()
