"""Wheels unpacked into one folder: files and nothing else, each where its wheel says, and none of them run.

A wheel is a stranger's archive: no path leaves the folder, no link is made, and what would run when a Python starts
(`.pth`) or stand among programs is left out.
"""

from __future__ import annotations

import os
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

from planner.python.packages import DIGEST

MOST_BYTES = 4 << 30  # of all wheels of a project, unpacked
LIBRARIES = ("purelib", "platlib")


class BadWheel(Exception):
    """An archive that is no wheel, or too large."""


def unpack(wheels: Path, folder: Path) -> tuple[str, ...]:
    """Unpack the wheels in a folder; their names. BadWheel."""
    left, names = MOST_BYTES, []
    for wheel in sorted(wheels.glob("*.whl")):
        descriptor = os.open(wheel, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            with os.fdopen(descriptor, "rb") as file, zipfile.ZipFile(file) as archive:
                left = _unpacked(archive, folder, left)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
            raise BadWheel(f"{wheel.name} cannot be read: {error}") from None
        names.append(wheel.name)
    return tuple(names)


def _unpacked(archive: zipfile.ZipFile, folder: Path, left: int) -> int:
    info, hashes = "", list[str]()
    for member in sorted(archive.infolist(), key=lambda each: each.filename):
        place = _place(member.filename)
        if member.is_dir() or place is None:
            continue
        left -= member.file_size
        if left < 0:
            raise BadWheel(f"the packages hold more than {MOST_BYTES >> 30} GiB")
        data = archive.read(member)
        target = folder.joinpath(*place.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if place.parts[0].endswith(".dist-info"):
            info = place.parts[0]
        if not (len(place.parts) == 2 and place.parts[0] == info and place.name in ("RECORD", "WHEEL")):
            hashes.append(f"{place} {sha256(data).hexdigest()}")  # of what is imported: a rebuild has another RECORD
    if info:
        (folder / info / DIGEST).write_text(sha256("\n".join(hashes).encode()).hexdigest())
    return left


def _place(name: str) -> PurePosixPath | None:
    """Where a member goes; None for what is left out. BadWheel for a path that leaves the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
        raise BadWheel(f"`{name[:80]}` is no path in a wheel")
    if path.parts[0].endswith(".data"):
        if len(path.parts) < 3 or path.parts[1] not in LIBRARIES:
            return None
        path = PurePosixPath(*path.parts[2:])
    return None if path.suffix == ".pth" else path
