"""Cache Python models, so that unchanged ones are not parsed or followed again.

An entry holds while every question of its code to the project has the same answer. It is found as that of a SQL file
is, by the arguments of its decorator as well. It depends on the questions of the code (`Questions`), and on the data
files that the code may read, which are searched and hashed again.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache, partial

from mergeplan.planner.errors import Place
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.project.remembered import File, Remembered, Said
from mergeplan.planner.python.files.file_access import FileAccess
from mergeplan.planner.python.files.filereads import FileReads
from mergeplan.planner.python.messages import RegisteredModel
from mergeplan.planner.python.project import ProjectCode, Traced, find_version
from mergeplan.planner.python.project_modules import Questions, module_names
from mergeplan.planner.serial import Json, decode_json, encode_json

ANY_FILE = FileAccess("", Place(""))


class RememberedModels:
    """The models that a project's Python files register, from the cache or parsed; `hashes` are those of all files."""

    def __init__(self, remembered: Remembered, code: ProjectCode, hashes: Mapping[str, str]) -> None:
        self._remembered, self._code = remembered, code
        self._hashes = {path: hashes[path] for path in code.files}
        self._names = module_names(tuple(code.files))
        self._version = cache(partial(find_version, packages=code.isolation.packages))
        remembered.foresee(self._entry_file(registration) for registration in code.registrations)

    def is_cheap(self, registration: RegisteredModel) -> bool:
        return self._remembered.is_cheap(*self._entry_file(registration))

    def read(self, registration: RegisteredModel, defaults: Defaults) -> Iterable[Model]:
        """Return the models of one decorated function; raise ProjectError(s) or NotRead."""
        if registration.arguments.get("is_sql"):  # running its code makes the query
            return tuple(self._code.models(registration, defaults))
        file = self._entry_file(registration)
        content = self._remembered.load_entry(file, defaults, self._restore_entry)
        if content is None:
            content = self._remembered.read(
                file,
                _arguments_text(registration),
                defaults,
                partial(self._follow_models, registration),
                lambda: {name: self._encode_trace(name, traced) for name, traced in self._code.traced.items()},
            )
        return content[0]

    def _entry_file(self, registration: RegisteredModel) -> File:
        hashed = self._hashes[registration.path]
        return registration.path, digest(
            "python", hashed, registration.name, str(registration.line), _arguments_text(registration)
        )

    def _follow_models(self, registration: RegisteredModel, defaults: Defaults) -> Said:
        self._code.traced.clear()
        return tuple(self._code.models(registration, defaults)), ()

    def _encode_trace(self, model: str, traced: Traced) -> Json:
        reads, questions = traced.code.reads, traced.code.asked
        return {
            "asked": encode_json(questions),
            "answers": questions.answers(self._names, self._hashes, self._version),
            "texts": sorted(reads.texts),
            "opens": reads.opens,
            "any": bool(reads.unknown),
            "given": traced.texts,
            "data": traced.data,
            "queried": [(name, place.path, place.line) for name, place in traced.code.queried],
            "digest": self._code.digests[model],
        }

    def _restore_entry(self, rest: Json) -> bool:
        if rest is True:  # none of its models is enabled
            return True
        if not all(self._is_as_it_was(model) for model in rest.values()):
            return False
        for name, model in rest.items():
            self._code.digests[name] = model["digest"]
            self._code.queried[name] = tuple((written, Place(path, line)) for written, path, line in model["queried"])
        return True

    def _is_as_it_was(self, model: Json) -> bool:
        questions = decode_json(Questions, model["asked"])
        reads = FileReads(set(model["texts"]), model["opens"], [ANY_FILE] if model["any"] else [])
        answers = questions.answers(self._names, self._hashes, self._version)
        return [answers, self._code.digest_data(reads, model["given"])] == [model["answers"], model["data"]]


def _arguments_text(registration: RegisteredModel) -> str:
    return json.dumps(registration.arguments, default=str)
