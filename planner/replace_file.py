"""Replacement of a file as a whole."""

import os
import secrets
import shutil
from pathlib import Path


def replace_file(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file that readers always see whole; keep its mode, or let only this user read a `private` one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if path.exists() and not private:
            shutil.copymode(path, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
