"""The file that says which tables are adopted for which models: read, and written for a survey's candidates."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mergeplan.planner.errors import Place, RequestError
from mergeplan.planner.parsing.sql.dates import text_of
from mergeplan.planner.parsing.sql.names import model_name
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.session.adoption.adoption_checks import Declared

KEYS = ("table", "start", "end", "copy")
FORM = "Write `tables:` and below it `shop.orders: legacy.orders`, or `table`, `start`, `end` and `copy` of each."


def read_declarations(path: Path) -> tuple[Declared, ...]:
    """Read the tables that a file declares; raise ProjectError at a wrong line and RequestError if there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"The file `{path}` cannot be read: {type(error).__name__}.") from None
    document = read_document(path.name, text)
    value = document.value
    if not isinstance(value, Mapping) or not isinstance(value.get("tables"), Mapping):
        raise document.error((), "This file names no tables.", FORM)
    if odd := [str(key) for key in value if key != "tables"]:
        raise document.error((odd[0],), f"`{odd[0]}` is no key of this file.", FORM)
    return tuple(_build_declaration(document, str(model), entry) for model, entry in value["tables"].items())


def parse_declaration(text: str, start: str | None, end: str | None, *, copy: bool) -> Declared:
    """Parse MODEL=TABLE; raise RequestError for anything else."""
    model, equals, table = (part.strip() for part in text.partition("="))
    if not equals:
        raise RequestError(f"`{text}` names no table.", hint="Write `--table MODEL=TABLE`.")
    place = Place("--table")
    return Declared(model_name(model, place), model_name(table, place), start, end, copy)


def file_of(candidates: Iterable[Declared]) -> str:
    lines = [f"  {candidate.model}: {candidate.table}\n" for candidate in candidates]
    return "".join(["tables:\n", *lines]) if lines else "tables: {}\n"


def _build_declaration(document: Document, model: str, entry: object) -> Declared:
    at = ("tables", model)
    if isinstance(entry, str):
        entry = {"table": entry}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("table"), str):
        raise document.error(at, f"`{model}` names no table.", FORM)
    if odd := [str(key) for key in entry if key not in KEYS]:
        raise document.error((*at, odd[0]), f"`{odd[0]}` is no key of a table.", FORM)
    if not isinstance(entry.get("copy", False), bool):
        raise document.error((*at, "copy"), "`copy` is true or false.")
    start, end = (text_of(entry[key]) if entry.get(key) is not None else None for key in ("start", "end"))
    place = document.place(at)
    return Declared(model_name(model, place), model_name(entry["table"], place), start, end, entry.get("copy", False))
