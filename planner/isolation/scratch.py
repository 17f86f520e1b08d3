"""Removes a folder that project code wrote to, whatever it contains."""

import os
import tempfile
from contextlib import suppress
from uuid import uuid4

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_scratch(folder: tempfile.TemporaryDirectory[str]) -> None:
    """Remove a temporary folder: no link in it is followed, and no depth of folders is too deep; it never fails."""
    with suppress(OSError):
        _remove_levels(folder.name)
    with suppress(OSError, RecursionError):
        folder.cleanup()


def _remove_levels(folder: str) -> None:
    """Remove a folder level by level: deeper contents are moved up, so that two descriptors are enough."""
    top = os.open(folder, FOLDER)
    try:
        while names := _clear_files(top):
            for name in names:
                _flatten_folder(top, name)
    finally:
        os.close(top)
    os.rmdir(folder)


def _flatten_folder(top: int, name: str) -> None:
    if os.getuid():  # root needs no mode, and a mode is set through links
        os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, FOLDER, dir_fd=top)
    try:
        for child in _clear_files(inner):
            if os.getuid():
                os.chmod(child, 0o700, dir_fd=inner)
            os.rename(child, uuid4().hex, src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _clear_files(folder: int) -> list[str]:
    """Remove everything but folders from a folder, and return the names of these."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return folders
