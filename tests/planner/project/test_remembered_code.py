"""Python models that were read before are read the same, without following their code: what it asked is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mergeplan.planner.python import models, project
from mergeplan.planner.python.reached import Reached, trace_code
from tests.planner.project.test_loader import CONFIG, project_of
from tests.planner.project.test_remembered import content, load

MODEL = """import cronsim
from sqlmesh import ExecutionContext, model

{imports}

@model("s.{name}", kind="FULL", columns={{"id": "int"}}, description="{about}")
def execute(context, start, end, **kwargs):
    {body}
"""


def write(name: str, body: str, imports: str = "", about: str = "") -> str:
    return MODEL.format(name=name, body=body, imports=imports, about=about)


FILES = {
    "config.yaml": CONFIG + "model_defaults:\n  dialect: spark\nvariables:\n  least: 3\n  folder: more\n",
    "external_models.yaml": "- name: raw.t\n  columns:\n    id: int\n",
    "lib/__init__.py": "",
    "lib/a.py": "from lib import b\n\ndef double(x):\n    return b.FACTOR * x\n",
    "lib/b.py": "FACTOR = 2\nOTHER = 3\n",
    "lib/whole.py": "VALUE = 1\n",
    "lib/extra.py": "X = 1\n",
    "models/plain.py": write("plain", "return context.fetchdf(f\"SELECT id FROM {context.table('raw.t')}\")"),
    "models/helped.py": write("helped", "return double(1)", "from lib.a import double"),
    "models/module.py": write("module", "return print(whole)", "from lib import whole"),
    "models/reader.py": write("reader", 'return open("data/codes.csv").read()'),
    "models/given.py": write("given", 'return [context.var("folder"), open(context.var("folder") + "/x.txt")]'),
    "models/seeker.py": write("seeker", 'return __import__("lib.a")'),
    "models/least.py": write("least", 'return context.var("least")'),
    "models/late.py": write("late", "import later\n    return later.x"),
    "models/lazy.py": write("lazy", "from lib import extra\n    return extra.X"),
    "models/many.py": 'from sqlmesh import model\n\n@model("s.@{n}", kind="FULL", columns={"id": "int"}, '
    'blueprints=[{"n": "one"}, {"n": "two"}])\ndef execute(context, **kwargs):\n    return 1\n',
    "models/off.py": 'from sqlmesh import model\n\n@model("s.off", kind="FULL", columns={"id": "int"}, enabled=False)\n'
    "def execute(context, **kwargs):\n    return None\n",
    "data/codes.csv": "1\n",
    "more/x.txt": "x",
}
NAMES = {path[7:-3] for path in FILES if path.startswith("models/")} - {"off"}
ANY_FILE = {"seeker", "module", "late"}  # whose code may read every file of the project
# what is edited, and which files must be read anew for it
EDITS: dict[str, tuple[dict[str, str | None], set[str]]] = {
    "nothing": ({}, set()),
    "a model": ({"models/plain.py": write("plain", "return 2")}, {"plain"}),
    "an argument of its decorator": ({"models/plain.py": write("plain", "return 1", about="new")}, {"plain"}),
    "what a helper names": ({"lib/b.py": "FACTOR = 7\nOTHER = 3\n"}, {"helped"}),
    "what a helper does not name": ({"lib/b.py": "FACTOR = 2\nOTHER = 4\n"}, {"helped"}),
    "a package around a helper": ({"lib/__init__.py": "print()\n"}, {"helped", "lazy", "module"}),
    "a module that is used whole": ({"lib/whole.py": "VALUE = 2\n"}, {"module"}),
    "a module below it": ({"lib/whole/more.py": "x = 1\n"}, {"module"}),
    "a module that nobody asked for": ({"other.py": "x = 1\n"}, set()),
    "a module that somebody asked for": ({"later.py": "x = 1\n"}, {"late"}),
    "a module of the name of a package": ({"cronsim.py": "x = 1\n"}, NAMES - {"many"}),
    "a module of a name of Python's": ({"json.py": "x = 1\n"}, NAMES),
    "a module that is gone": ({"lib/extra.py": None}, {"lazy"}),
    "a data file that is gone": ({"data/codes.csv": None}, {"reader"}),
    "a data file": ({"data/codes.csv": "2\n"}, {"reader"}),
    "a data file of that name": ({"old/data/codes.csv": "2\n"}, {"reader"}),
    "a data file that a variable names": ({"more/x.txt": "y"}, {"given"}),
}


def edit(root: Path, files: Mapping[str, str | None]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose models' code is followed from now on."""
    names: list[str] = []

    def follow(files: Mapping[str, str], path: str, *arguments: object) -> Reached:
        names.append(path[7:-3])
        return trace_code(files, path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(models, "trace_code", follow)
    return names


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project_of(tmp_path / "project", FILES)


@pytest.mark.parametrize("name", EDITS)
def test_what_code_rests_on_is_looked_at_again(name: str, root: Path, tmp_path: Path, followed: list[str]) -> None:
    files, anew = EDITS[name]
    before = load(root, tmp_path / "cache")
    assert {*followed} == NAMES
    edit(root, files)
    followed.clear()

    warm = load(root, tmp_path / "cache")

    assert {*followed} == anew | (ANY_FILE if files else set())
    cold = load(root, None)
    assert (content(warm), warm.code.digests, warm.code.queried) == (
        content(cold),
        cold.code.digests,
        cold.code.queried,
    )
    edit(root, {path: FILES.get(path) for path in files})
    assert content(load(root, tmp_path / "cache")) == content(before)


def test_another_version_of_a_package_is_other_code(
    root: Path, tmp_path: Path, followed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load(root, tmp_path / "cache").code.digests
    followed.clear()
    for module in (project, "mergeplan.planner.project.remembered_code"):
        name = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{name}.find_version", lambda package, packages=None: f"{package} 2")

    after = load(root, tmp_path / "cache").code.digests

    assert {*followed} == NAMES - {"many"}
    assert {name for name in before if before[name] == after[name]} == {"s.one", "s.two"}


def test_a_variable_is_part_of_what_is_remembered(root: Path, tmp_path: Path) -> None:
    load(root, tmp_path / "cache")
    edit(root, {"config.yaml": FILES["config.yaml"].replace("least: 3", "least: 4")})

    assert content(load(root, tmp_path / "cache")) == content(load(root, None))


def test_a_model_that_names_a_table_of_another_environment_is_refused_from_memory_too(tmp_path: Path) -> None:
    direct = write("direct", 'return context.fetchdf("SELECT id FROM s.plain")')
    root = project_of(tmp_path / "project", {**FILES, "models/direct.py": direct})

    messages = []
    for _ in range(2):
        with pytest.raises(Exception, match="directly") as raised:
            load(root, tmp_path / "cache")
        messages.append(str(raised.value))

    assert messages[0] == messages[1]
