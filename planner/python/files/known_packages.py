"""The names of other packages that open no file by themselves, and those that open only the file in their arguments.

`known_packages.ini` has the tables. Anything that is not in them may open any file.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.planner.name_lists import read_lists

EVERY_NAME: frozenset[str] = frozenset()

_LISTS = read_lists(__package__, "known_packages.ini")
_WHOLE = [package for packages in _LISTS["whole"].values() for package in packages]
# Names that lead to other code from packages that are harmless otherwise.
_EXCEPT = frozenset(("typing.get_type_hints", "typing_extensions.get_type_hints", "sqlglot.executor"))

_READERS = ("filepath_or_buffer", "path_or_buf", "path", "io", "source", "file", "filename", "fname", "url")
PATTERNS = frozenset(("glob.glob", "glob.iglob"))
PATHS = frozenset(("pathlib.Path", "pathlib.PosixPath"))
BUFFERS = frozenset(("io.StringIO", "io.BytesIO"))
JOINS = frozenset(("os.path.join", "pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"))
SAME_PATH = frozenset(
    """builtins.str os.fspath os.path.abspath os.path.realpath os.path.normpath os.path.expanduser
    urllib.request.Request""".split()
)
REMOTE = frozenset("http https s3 s3a s3n gs gcs abfs abfss wasb wasbs hdfs ftp sftp jdbc".split())
_DUNDERS = frozenset(("__name__", "__version__", "__members__"))


@dataclass(frozen=True)
class Opener:
    """A function that opens the file that its first argument, or one of these keywords, names."""

    keywords: tuple[str, ...] = _READERS
    refuses: tuple[str, ...] = ("allow_pickle", "opener")  # keywords with which it may run or open something else


OPENERS: Mapping[str, Opener] = {name: Opener() for name in _LISTS["openers"]["names"]}
WHOLE_OR_IN_PART: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_WHOLE, EVERY_NAME),
    **{name: EVERY_NAME if names == ("*",) else frozenset(names) for name, names in _LISTS["in_part"].items()},
}
_SHORT = frozenset("bltns docscrape np pa pd pyspark rich".split())  # as which packages import others
_LEAKS = sys.stdlib_module_names - set(_WHOLE)  # a module's own imports are its attributes


def opens_no_file(dotted_name: str) -> bool:
    """Return True if this name of another package opens no file by itself.

    >>> opens_no_file("pandas.DataFrame"), opens_no_file("pandas.read_xml"), opens_no_file("json.codecs.open")
    (True, False, False)
    """
    parts = dotted_name.split(".")
    if any(dotted_name == name or dotted_name.startswith(f"{name}.") for name in _EXCEPT):
        return False
    for end in range(len(parts) - 1, 0, -1):
        names = WHOLE_OR_IN_PART.get(".".join(parts[:end]))
        if names is not None:
            return (names == EVERY_NAME or parts[end] in names) and not any(
                _is_leak(part, names) for part in parts[end:]
            )
    return False


def _is_leak(part: str, names: frozenset[str]) -> bool:
    """Return True for a name that leads from a package to a module that it imports, or to private names."""
    if part in names or part in _DUNDERS:
        return False
    return part in _LEAKS or part in _SHORT or part.startswith("_")
