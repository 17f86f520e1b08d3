"""The file and the line of a project that an error of dbt is about."""

import os
import re
import traceback
from glob import escape, glob

HEADER = re.compile(r"^\w+ Error in \w+ [\w.]+ \(([^)]*)\)")
NAMED_FILE = re.compile(r"(?<![\w./-])([\w./-]+\.(?:sql|ya?ml|csv|md))\b")
OWN_CODE = "top-level template code"  # Jinja's name for code outside of macros, in a traceback
SECRET = re.compile(r"Secret env vars are allowed only in .*Found '(\w+)'", re.DOTALL)  # the files it names are right

MISSING = re.compile(r"Env var required but not provided: '(\w+)'")  # which names no file, or that of a model


def find_place(text: str, root: str) -> tuple[str, int]:
    """Return the file and the line that a message of dbt is about; ("", 0) if it is about no project file."""
    text = text.replace(f"{root}/", "")
    if secret := SECRET.search(text):
        return _first_use(re.escape(secret[1]), root)
    missing = MISSING.search(text)
    used = _first_use(rf"env_var\(\s*['\"]{missing[1]}['\"]", root) if missing else ("", 0)
    if used[0]:
        return used
    match = HEADER.search(text) or NAMED_FILE.search(text)
    path = _find_file(match[1], root) if match else ""
    if not path:
        return "", 0
    line = re.search(r"\bline (\d+)", text)
    return path, int(line[1]) if line else 1


def find_line(error: BaseException, code: str, file: str) -> int:
    """Return the line of a file at which its template `code` failed; 1 if that is not known.

    A snapshot's template is a part of its file; that of a generic test is in no file.
    """
    line = _template_line(error)
    if not line or not code or not os.path.isfile(file):
        return 1
    with open(file, encoding="utf-8", errors="replace") as source:
        preceding_text, has_code, _ = source.read().partition(code)
    return preceding_text.count("\n") + line if has_code else 1


def _template_line(error: BaseException | None) -> int:
    """Return the line of a node's own template that led to an error, in a macro or itself; 0 if there is none."""
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.name == OWN_CODE:
                return frame.lineno or 0
        error = error.__cause__ or error.__context__
    return 0


def _find_file(path: str, root: str) -> str:
    """Return the project's file of a path, which dbt gives from the root of its package; '' if there is none."""
    relative_path = os.path.relpath(os.path.join(root, path), root)
    if relative_path.startswith("../"):
        return ""
    of_packages = glob(f"{escape(root)}/dbt_packages/*/{escape(relative_path)}")
    file = next(filter(os.path.isfile, (os.path.join(root, relative_path), *sorted(of_packages))), "")
    if not file:  # dbt names some files from the folder of their kind
        below = [*filter(os.path.isfile, glob(f"{escape(root)}/*/{escape(relative_path)}"))]
        file = below[0] if len(below) == 1 else ""
    return os.path.relpath(file, root) if file else ""


def _first_use(pattern: str, root: str) -> tuple[str, int]:
    is_used = re.compile(pattern).search
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".sql", ".yml", ".yaml", ".md")) and os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as lines:
                    numbers = (number for number, line in enumerate(lines, start=1) if is_used(line))
                    if number := next(numbers, 0):
                        return os.path.relpath(path, root), number
    return "", 0
