"""Random projects and edits are read and planned the same with a warm cache, a cold one, a damaged one, one of another
version, and one that two processes write.

MERGEPLAN_CASES says how many (`make prove`: 2,000), MERGEPLAN_SEED with which seed they begin.
"""

from __future__ import annotations

import io
import os
import random
import shutil
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pytest

from benchmarks.promoted import promote as promote_project
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.errors import MergeplanError, ProjectError, ProjectErrors
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.category import decide
from mergeplan.planner.plan.category.override import CHOICES
from mergeplan.planner.plan.change import ChangeKind
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.project.loader import LoadOptions, load_project
from mergeplan.planner.semantics.columns import _analyze_query
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import make_plan
from tests.planner.generating import Case, generate
from tests.planner.generating.python_projects import edit_project, generate_project
from tests.planner.project.test_loader import project_of

pytestmark = pytest.mark.sampled

NOW = datetime(2026, 1, 6, tzinfo=UTC)
SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
CASES = int(os.environ.get("MERGEPLAN_CASES", "10"))


def write_project(root: Path, models: Mapping[str, Model]) -> Path:
    """The project in files."""
    shutil.rmtree(root, ignore_errors=True)
    files = {
        f"models/{name}.sql": f"MODEL (name {name}, kind {model.kind});\n{model.sql}"
        for name, model in models.items()
        if model.sql
    }
    listed = [
        f"- name: {model.name}\n  columns:\n" + "".join(f"    {c.name}: {c.type or 'string'}\n" for c in model.columns)
        for model in models.values()
        if not model.sql
    ]
    return project_of(root, {**files, "external_models.yaml": "".join(listed)})


def read(root: Path, cache: Path | None) -> object:
    """The models of a folder, or what is wrong with it."""
    try:
        return load_project(root, NOW, options=LoadOptions(cache=Cache(cache))).models
    except (ProjectError, ProjectErrors) as error:
        return str(error)


def damage(rng: random.Random, cache: Path) -> None:
    """Some bytes of the cache are others, if the damage before did not end it."""
    for file in cache.glob("*.db"):
        data = bytearray(file.read_bytes())
        for _ in range(rng.choice((1, 30, 3000))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)


@pytest.mark.parametrize("seed", range(SEED, SEED + max(CASES // 10, 1)))
def test_a_project_is_read_the_same_whatever_is_remembered(seed: int, tmp_path: Path) -> None:
    case, rng = generate(seed), random.Random(seed)  # noqa: S311 # reproducible, not secret
    root, warm = tmp_path / "project", tmp_path / "cache"
    for models in (case.before, case.after, case.before, case.after):
        cold = read(write_project(root, models), None)

        assert read(root, warm) == cold, f"seed {seed}: warm"
        damage(rng, warm)
        assert read(root, warm) == cold, f"seed {seed}: damaged"


def read_code(root: Path, cache: Path | None) -> object:
    """The models of a folder with Python, with what is known of their code; or what is wrong with it."""
    try:
        project = load_project(root, NOW, options=LoadOptions(cache=Cache(cache)))
    except (ProjectError, ProjectErrors) as error:
        return str(error)
    code = project.code
    return project.models, project.files, code.digests, code.queried, code.names, code.signals, code.registrations


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(SEED, SEED + max(CASES // 30, 1)))
def test_python_code_is_read_the_same_whatever_is_remembered(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    root, warm, files = tmp_path / "project", tmp_path / "cache", generate_project(rng)
    for step in range(3):
        shutil.rmtree(root, ignore_errors=True)
        cold = read_code(project_of(root, files), None)

        assert read_code(root, warm) == cold, f"seed {seed}, step {step}: first"
        assert read_code(root, warm) == cold, f"seed {seed}, step {step}: again"
        damage(rng, warm)
        assert read_code(root, warm) == cold, f"seed {seed}, step {step}: damaged"
        with monkeypatch.context() as other:
            other.setattr("mergeplan.planner.project.remembered.reader_version", lambda: "another version")
            assert read_code(root, warm) == cold, f"seed {seed}, step {step}: another version"
        files = edit_project(rng, files)


class Texts(dict[str, str]):
    """What was remembered, in memory."""

    def put(self, key: str, text: str) -> None:
        self[key] = text


def signature(plan: Plan) -> tuple[object, ...]:
    """All that a plan decides."""
    return plan.id, plan.changes, plan.blockers, plan.warnings


def decisions(case: Case, shapes: ShapeMemory, seed: int) -> list[object]:
    """What plans decide that turn prod into another project, back, and into the other one again; with categories that
    somebody chose for some of the edits, so that tables hold other rows than their queries return."""
    rng, decided = random.Random(seed), list[object]()  # noqa: S311 # reproducible, not secret
    prod, loaded = Environment("prod"), Loaded({})
    for models in (case.before, case.after, case.before, case.after):
        try:
            plan = make_plan(models, prod, prod, loaded, shapes=shapes, empty_backfill=rng.random() < 0.1)
            edited = [change.name for change in plan.changes if change.change is ChangeKind.DIRECT]
            categories = {name: rng.choice(CHOICES) for name in edited if rng.random() < 0.3}
            decided.append(signature(plan))
            plan = make_plan(models, prod, prod, loaded, shapes=shapes, categories=categories)
        except MergeplanError as error:
            decided.append(str(error))
            continue
        decided.append(signature(plan))
        prod = replace(plan.new, revision=prod.revision + 1, plan_id=plan.id)
        timelines = {change.new.table: change.needed for change in plan.changes if change.new} | {**loaded.timelines}
        drifted = frozenset(snapshot.table for snapshot in prod.snapshots.values() if snapshot.forced)
        loaded = Loaded(timelines, frozenset(timelines), drifted)
    return decided


@pytest.mark.parametrize("seed", range(SEED, SEED + CASES))
def test_a_plan_is_the_same_whatever_is_remembered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case, texts = generate(seed), Texts()
    with monkeypatch.context() as by_rules:
        by_rules.setattr(decide, "settle", lambda *_: None)
        cold = decisions(case, NO_MEMORY, seed)

    assert decisions(case, NO_MEMORY, seed) == cold, f"seed {seed}: nothing is remembered"
    assert decisions(case, ShapeMemory(texts), seed) == cold, f"seed {seed}: first"
    _analyze_query.cache_clear()
    assert decisions(case, ShapeMemory(texts), seed) == cold, f"seed {seed}: warm"
    assert decisions(case, ShapeMemory(texts, "other"), seed) == cold, f"seed {seed}: another version"


def show_plan(root: Path, cache: str | Path) -> tuple[int, str]:
    """What `mergeplan plan` writes in a folder, and its exit code."""
    return show(root, cache, "plan", "--no-prompts")


def show(root: Path, cache: str | Path, *arguments: str) -> tuple[int, str]:
    """What a verb writes in a folder, and its exit code."""
    out, before = io.StringIO(), os.environ.get("MERGEPLAN_CACHE", "")
    os.environ["MERGEPLAN_CACHE"] = str(cache)
    _analyze_query.cache_clear()
    try:
        with chdir(root), redirect_stdout(out), redirect_stderr(out):
            return run(VERBS, arguments), out.getvalue()
    finally:
        os.environ["MERGEPLAN_CACHE"] = before


def rewrite_project(root: Path, models: Mapping[str, Model]) -> Path:
    """The project in files, with the state that it has."""
    with suppress(FileNotFoundError):
        shutil.move(root / ".mergeplan", root.with_name("state"))
    write_project(root, models)
    with suppress(FileNotFoundError):
        shutil.move(root.with_name("state"), root / ".mergeplan")
    return root


@pytest.mark.parametrize("seed", range(SEED, SEED + max(CASES // 10, 1)))
def test_the_command_line_plans_the_same_whatever_is_remembered(seed: int, tmp_path: Path) -> None:
    case, rng = generate(seed), random.Random(seed)  # noqa: S311 # reproducible, not secret
    root, warm = tmp_path / "project", tmp_path / "cache"
    with suppress(MergeplanError):  # a project that cannot be opened is planned, too
        promote_project(rewrite_project(root, case.before))
    for models in (case.after, case.before, case.after):
        cold = show_plan(rewrite_project(root, models), "off")

        assert show_plan(root, warm) == cold, f"seed {seed}: first"
        assert show_plan(root, warm) == cold, f"seed {seed}: again"
        damage(rng, warm)
        assert show_plan(root, warm) == cold, f"seed {seed}: damaged"


@pytest.mark.prove
def test_two_processes_that_share_a_cache_plan_what_each_plans_alone(tmp_path: Path) -> None:
    roots = [rewrite_project(tmp_path / f"project{seed}", generate(seed).after) for seed in (SEED, SEED + 1)]
    alone = [show_plan(root, "off") for root in roots]

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        for _ in range(3):
            both = [processes.submit(show_plan, root, tmp_path / "cache") for root in (*roots, *roots)]
            assert [job.result() for job in both] == [*alone, *alone]


@pytest.mark.prove
def test_two_processes_that_share_a_cache_read_the_code_that_each_reads_alone(tmp_path: Path) -> None:
    projects = [generate_project(random.Random(seed)) for seed in (SEED, SEED + 1)]  # noqa: S311 # reproducible
    roots = [project_of(tmp_path / f"project{number}", files) for number, files in enumerate(projects)]
    alone = [read_code(root, None) for root in roots]

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        for _ in range(2):
            both = [processes.submit(read_code, root, tmp_path / "cache") for root in (*roots, *roots)]
            assert [job.result() for job in both] == [*alone, *alone]


def show_lines(root: Path, cache: str | Path) -> list[tuple[int, str]]:
    """What the linter, the lineage of each model, and the formatter write."""
    _analyze_query.cache_clear()
    models = sorted(load_project(root, NOW).models)
    verbs = [("lint",), ("format", "--check", "--diff"), *(("lineage", name, "--downstream") for name in models)]
    return [show(root, cache, *verb) for verb in verbs]


@pytest.mark.parametrize("seed", range(SEED, SEED + max(CASES // 10, 1)))
def test_verbs_that_only_look_say_the_same_whatever_is_remembered(seed: int, tmp_path: Path) -> None:
    case, rng = generate(seed), random.Random(seed)  # noqa: S311 # reproducible, not secret
    root, warm = tmp_path / "project", tmp_path / "cache"
    for models in (case.before, case.after):
        with (write_project(root, models) / "config.yaml").open("a") as config:
            config.write("linter:\n  enabled: true\n  rules: ALL\n")
        with suppress(ProjectError, ProjectErrors):  # a project that cannot be opened is looked at by nobody
            cold = show_lines(root, "off")

            assert show_lines(root, warm) == cold, f"seed {seed}: first"
            assert show_lines(root, warm) == cold, f"seed {seed}: again"
            damage(rng, warm)
            assert show_lines(root, warm) == cold, f"seed {seed}: damaged"
