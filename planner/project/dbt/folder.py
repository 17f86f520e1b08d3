"""A dbt project as a folder of ours: its nodes are files with the text of a model, under the paths that they have."""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.files.dbt import texts as node_texts
from mergeplan.planner.parsing.files.dbt.hooks import is_loaded
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject, DbtUnitTest
from mergeplan.planner.parsing.files.dbt.unit_tests import spell_names, unit_test_body, unit_test_text
from mergeplan.planner.project.dbt.inputs import OWN_TESTS
from mergeplan.planner.project.folder import Folder

MODELS = ("model", "seed", "snapshot")
LOADED = {
    "seed": "seeds that hooks load: `dbt seed` builds them",
    "model": "tables that hooks fill with what dbt knows: `dbt run` builds them",
}
MOST_NOTES = 5  # tests that are named
SOURCES = "external_models/dbt_sources.yaml"
EXPOSURES = "exposures/dbt_exposures.yaml"


class DbtFolder(Folder):
    """The files that a compiled dbt project represents; the real ones were hashed when it was compiled."""

    def __init__(self, folder: Folder, project: DbtProject, target_note: str = "") -> None:
        vars(self).update(vars(folder))
        self.real_hashes = dict(folder.hashes)  # of the files that were compiled, by path
        self.project = project
        self._target_note = target_note
        self._not_asked: list[str] = []

    @cached_property
    def nodes(self) -> Mapping[str, DbtNode]:
        """The nodes that are tables or views, by the path of their file and, for all but its first, their name."""
        nodes: dict[str, DbtNode] = {}
        for node in self.project.nodes:
            if node.type in MODELS and not is_loaded(node):
                nodes[node.path if node.path not in nodes else f"{node.path}#{node.name}"] = node
        return nodes

    @cached_property
    def _dbt_only_nodes(self) -> tuple[DbtNode, ...]:
        """The seeds and tables that only dbt can fill: it builds these, and tests them."""
        return tuple(node for node in self.project.nodes if is_loaded(node))

    @cached_property
    def _test_audits(self) -> tuple[Mapping[str, list[tuple[str, str]]], Mapping[str, str]]:
        """The audits that tests are: by the id of their model, and the texts of those of none alone by their path."""
        by_model, apart = node_texts.tests_by_model(self.project)
        audits = {id: self._audit_texts(tests, self.project.by_id[id]) for id, tests in by_model.items()}
        for node in self.nodes.values():
            if constraints := [*node_texts.constraint_texts(node)]:
                audits[node.id] = [*audits.get(node.id, ()), *constraints]
        texts = {
            f"{test.path}#{test.name}": "\n".join(text for _, text in self._audit_texts([test], None)) for test in apart
        }
        return audits, {path: text for path, text in texts.items() if text}

    def _audit_texts(self, tests: Sequence[DbtNode], model: DbtNode | None) -> list[tuple[str, str]]:
        audits: list[tuple[str, str]] = []
        for test in tests:
            try:
                audits += node_texts.audit_texts(test, model)
            except ProjectError as error:
                self._not_asked.append(f"{test.path}: the test `{test.name}` does not run: {error.message}")
        return audits

    @cached_property
    def _unit_tests(self) -> Mapping[str, str]:
        """The files of unit tests by their path; a test that would ask something else than in dbt is noted."""
        bodies: dict[str, list[tuple[DbtUnitTest, Mapping[str, object]]]] = {}
        for test in self.project.unit_tests:
            try:
                bodies.setdefault(test.path, []).append((test, unit_test_body(test, self.project)))
            except ProjectError as error:
                self._not_asked.append(f"{test.path}: {error.message} {error.hint}")
        return {
            path if path not in self.nodes else f"{path}#unit_tests": unit_test_text(tests, self._own_text(path))
            for path, tests in bodies.items()
        }

    def _own_text(self, path: str) -> str:
        file = os.path.realpath(self.root / path)
        if not file.startswith(f"{self._real_root}{os.sep}") or not os.path.isfile(file):
            return ""
        with open(file, encoding="utf-8") as opened:
            return opened.read()

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self.root)

    def dbt_text(self, path: str) -> str:
        """Return the template that a model's path stands for; '' for a path of anything else."""
        node = self.nodes.get(path)
        return self._own_text(node.path) if node and node.path.endswith(".sql") else ""

    def count_tests(self, audits: Collection[str], tests: Collection[UnitTest]) -> tuple[int, int]:
        """Return how many tests of the project are among these audits, and how many it has, with unit tests."""
        own_count = sum(test.path.startswith(f"{OWN_TESTS}/") for test in tests)
        names = [node_texts.audit_name(node).lower() for node in self.project.nodes if node.type == "test"]
        opened = sum(name in audits or f"{name}_warns" in audits for name in names)
        return opened, len(names) + len(self.project.unit_tests) + own_count

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the project is not followed."""
        _ = self._test_audits, self._unit_tests
        hooks = len(self.project.hooks)
        note_lines = [f"`on-run-start` and `on-run-end` do not run ({hooks} statements)."] if hooks else []
        placed = sum(bool(node.settings.get("location_root")) for node in self.nodes.values())
        if placed:
            note_lines.append(f"`location_root` has no effect ({placed} models): tables are where their schema is.")
        for kind, words in LOADED.items():
            if nodes := [node for node in self._dbt_only_nodes if node.type == kind]:
                first = f"`{nodes[0].table}`" + (f" and {len(nodes) - 1} more are" if nodes[1:] else " is among the")
                note_lines.append(f"{first} {words}, and they are read as its tables.")
        unlisted_count = len(self._not_asked) - MOST_NOTES
        note_lines += [f"{unlisted_count} more tests do not run."] if unlisted_count > 0 else []
        return (*filter(None, [self._target_note]), *self._not_asked[:MOST_NOTES], *note_lines)

    def files(self, folder: str, ignore_patterns: Sequence[str], *suffixes: str) -> Iterator[str]:
        """Yield the paths of dbt's models, sources and tests as our own, and our own rules and unit tests."""
        if folder == "linter":
            yield from super().files(folder, ignore_patterns, *suffixes)
        elif ".sql" in suffixes and folder == "models":
            yield from self.nodes
        elif ".sql" in suffixes and folder == "audits":
            yield from self._test_audits[1]
        elif folder == "tests" and ".yml" in suffixes:
            yield from self._unit_tests
            yield from super().files(OWN_TESTS, ignore_patterns, *suffixes)
        elif folder == "external_models" and (self.project.sources or self._dbt_only_nodes):
            yield SOURCES
        elif folder == "exposures" and self.project.exposures:
            yield EXPOSURES

    def hash(self, name: str) -> str:
        self.hashes[name] = digest(self._path_text(name))
        return self.hashes[name]

    def text(self, name: str) -> str:
        """Return the text that a path represents; raise ProjectError if its node cannot be compiled or translated."""
        self.last = name
        text = self._path_text(name)
        self.hashes[name] = digest(text)
        return text

    def model_names(self, name: str) -> tuple[tuple[str, ...], bool]:
        """Return the models of a path, even if it cannot be opened, and True: these are all."""
        return ((self.nodes[name].table,) if name in self.nodes else ()), True

    def _path_text(self, name: str) -> str:
        if name == SOURCES:
            return json.dumps([*node_texts.external_texts(self.project)], indent=1)
        if name == EXPOSURES:
            return json.dumps([*node_texts.exposure_texts(self.project)], indent=1)
        if name in self._test_audits[1]:
            return self._test_audits[1][name]
        if name in self._unit_tests:
            return self._unit_tests[name]
        if name.startswith(f"{OWN_TESTS}/"):
            return spell_names(super().text(name), self.project)
        if name not in self.nodes:
            return super().text(name)
        node = self.nodes[name]
        if node.error:
            message = f"dbt cannot compile `{node.table}`: {node.error.rstrip('.')}."
            raise ProjectError(message, place=Place(node.path, node.line))
        return node_texts.model_text(node, self._test_audits[0].get(node.id, ()))
