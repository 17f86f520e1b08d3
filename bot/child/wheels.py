"""Wheels unpacked into one folder: files and nothing else, each where its wheel says, and none of them run.

A wheel is a stranger's archive: no path leaves the folder, no link is made, and what would run when a Python starts
(`.pth`) or stand among programs is left out.
"""

import json
import os
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from email.parser import BytesParser
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from mergeplan.planner.python.packages import INDEX, normalize_name

MOST_BYTES = 4 << 30  # of all wheels of a project, unpacked
DIRECTORY_MAX = 32 << 20  # bytes of a wheel's list of its files, which is read as a whole
BLOCK = 1 << 20
END, END_BYTES, END_64 = b"PK\5\6", 22, b"PK\6\7"  # of an archive, and before it that of one with larger numbers
LIBRARIES = ("purelib", "platlib")
NAME = re.compile(r"[A-Za-z0-9._-]+")


class BadWheel(Exception):
    """An archive that is no wheel, or too large."""


def unpack_wheels(wheels: Path, folder: Path) -> None:
    """Unpack the wheels in a folder, and write an index of them; raise BadWheel for one that is not accepted."""
    index: dict[str, Any] = {}
    remaining_bytes = MOST_BYTES
    for wheel in sorted(wheels.glob("*.whl")):
        descriptor = os.open(wheel, os.O_RDONLY | os.O_NOFOLLOW)
        unpacked = _Unpacked(folder, remaining_bytes)
        try:
            with os.fdopen(descriptor, "rb") as file:
                _check_directory(file)
                with zipfile.ZipFile(file) as archive:
                    unpacked.take(archive)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
            raise BadWheel(f"{wheel.name} cannot be read: {error}") from None
        remaining_bytes = unpacked.left
        index |= unpacked.index_entry(wheel.name)
    (folder / INDEX).write_text(json.dumps(index, indent=1, sort_keys=True), encoding="utf-8")


@dataclass
class _Unpacked:
    folder: Path
    left: int  # bytes
    metadata: bytes = b""
    modules: set[str] = field(default_factory=set)
    hashes: list[str] = field(default_factory=list)

    def take(self, archive: zipfile.ZipFile) -> None:
        for member in sorted(archive.infolist(), key=lambda info: info.filename):
            place = _member_path(member.filename)
            if place is None or member.is_dir():
                continue
            self.left -= member.file_size
            if self.left < 0:
                raise BadWheel(f"the packages hold more than {MOST_BYTES >> 30} GiB")
            target = self.folder.joinpath(*place.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            digest = sha256()
            with archive.open(member) as source, target.open("wb") as copy:  # of a size that was declared, and counted
                while block := source.read(BLOCK):
                    digest.update(block)
                    copy.write(block)
            if not place.parts[0].endswith(".dist-info"):
                self.modules.add(place.parts[0].partition(".")[0])
                self.hashes.append(f"{place} {digest.hexdigest()}")
            elif place.name == "METADATA" and len(place.parts) == 2:
                with target.open("rb") as copy:
                    self.metadata = copy.read(BLOCK)

    def index_entry(self, wheel: str) -> dict[str, Any]:
        headers = BytesParser().parsebytes(self.metadata, headersonly=True)
        name = normalize_name(str(headers.get("Name") or wheel.partition("-")[0]))
        required = (NAME.match(str(requirement)) for requirement in headers.get_all("Requires-Dist", ()))
        return {
            name: {
                "version": str(headers.get("Version") or ""),
                "digest": sha256("\n".join(self.hashes).encode()).hexdigest()[:32],
                "modules": sorted(self.modules),
                "requires": sorted({normalize_name(match[0]) for match in required if match}),
            }
        }


def _check_directory(file: BinaryIO) -> None:
    """Raise BadWheel for an archive whose list of files would take too much memory. It leaves the file at its start."""
    start = max(0, file.seek(0, os.SEEK_END) - (1 << 16) - END_BYTES - 20)
    file.seek(start)
    tail = file.read()
    file.seek(0)
    end = len(tail) - END_BYTES if tail[-END_BYTES:].startswith(END) else tail.rfind(END)
    if end < 0 or len(tail) < end + END_BYTES:
        raise BadWheel("it has no end")
    (size,) = struct.unpack_from("<I", tail, end + 12)
    if size > DIRECTORY_MAX or tail[max(0, end - 20) : end].startswith(END_64):
        raise BadWheel(f"its list of files is larger than {DIRECTORY_MAX >> 20} MiB")


def _member_path(name: str) -> PurePosixPath | None:
    """Return the path of a member, or None if it is left out; raise BadWheel if it leaves the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
        raise BadWheel(f"`{name[:80]}` is no path in a wheel")
    if path.parts[0].endswith(".data"):
        if len(path.parts) < 3 or path.parts[1] not in LIBRARIES:
            return None
        path = PurePosixPath(*path.parts[2:])
    return None if path.suffix == ".pth" or path.parts == (INDEX,) else path
