"""Lists of names in a data file beside the module that reads them."""

from collections.abc import Mapping
from configparser import RawConfigParser
from importlib.resources import files

Lists = Mapping[str, tuple[str, ...]]


def read_lists(package: str, file: str) -> dict[str, Lists]:
    """Return section -> key -> names of a file of `configparser`; a line that begins with a blank continues a key."""
    parser = RawConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names differ by case
    parser.read_string(files(package).joinpath(file).read_text(encoding="utf-8"))
    return {name: {key: tuple(text.split()) for key, text in parser[name].items()} for name in parser.sections()}
