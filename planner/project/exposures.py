"""The files of a project's exposures: `exposures.yaml`, and those of the folder `exposures`."""

from collections.abc import Collection, Iterator

from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.names import parse_name
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.project.folder import Folder

FILES = ("exposures.yaml", "exposures.yml")
_TEXTS = ("name", "type", "owner", "url", "description")
_KEYS = (*_TEXTS, "models")
_FORM = "Write `- name: Weekly report` and `models: [schema.table]`."
_SCHEMES = ("https://", "http://")


def load_exposures(
    reading: Folder, config: Config, catalog: str, models: Collection[str] | None
) -> tuple[Exposure, ...]:
    """Read the uses of models outside of the project; `models` is None if not every model's name is known."""
    exposures: list[Exposure] = []

    def read(path: str) -> None:
        exposures.extend(_read_exposures(read_document(path, reading.text(path)), catalog, models))

    paths = [name for name in FILES if (reading.root / name).is_file()]
    reading.each((*paths, *reading.files("exposures", config.ignore_patterns, ".yaml", ".yml")), read)
    return tuple(exposures)


def _read_exposures(document: Document, catalog: str, models: Collection[str] | None) -> Iterator[Exposure]:
    """Yield the exposures of one file; raise ProjectError for a wrong one, or a name not in `models` (None: any)."""
    if document.value is None:
        return
    if not isinstance(document.value, list):
        raise document.error((), "Expected a list of exposures here.", _FORM)
    for index, entry in enumerate(document.value):
        if not isinstance(entry, dict) or not entry.get("name") or not isinstance(entry.get("models"), list):
            raise document.error((index,), "An exposure needs a `name` and `models`.", _FORM)
        for key, value in entry.items():
            if key not in _KEYS:
                raise document.error(
                    (index, str(key)), f"`{key}` is not a key of an exposure.", did_you_mean(key, _KEYS)
                )
            if key in _TEXTS and value is not None and not isinstance(value, str):
                raise document.error((index, key), f"`{key}` must be a string.")
        if entry.get("url") and not entry["url"].startswith(_SCHEMES):
            raise document.error((index, "url"), "`url` must begin with `https://` or `http://`.")
        yield Exposure(
            name=entry["name"],
            models=tuple(dict.fromkeys(_read_models(document, index, entry["models"], catalog, models))),
            type=entry.get("type") or "",
            owner=entry.get("owner") or "",
            url=entry.get("url") or "",
        )


def _read_models(
    document: Document, index: int, names: list[object], catalog: str, models: Collection[str] | None
) -> Iterator[str]:
    for number, text in enumerate(names):
        place = document.place((index, "models", number))
        if not isinstance(text, str):
            raise document.error((index, "models", number), "`models` must be a list of names.", _FORM)
        name = parse_name(text, place, catalog)
        if models is not None and name not in models:
            hint = did_you_mean(name, models)
            raise document.error((index, "models", number), f"`{name}` is no model of this project.", hint)
        yield name
