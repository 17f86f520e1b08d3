"""A project that was read before is read the same, without parsing: whatever an entry rests on is looked at again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.parsing.files.model_file import Defaults, parse_models
from mergeplan.planner.parsing.sql import tokens
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, tokenize
from mergeplan.planner.project import model_files
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.project.remembered import Said
from tests.planner.project.test_loader import CONFIG, project_of

NOW = datetime(2026, 1, 6, 7, 8, tzinfo=UTC)
PROJECTS = sorted(
    path for path in (Path(__file__).parents[2] / "projects").iterdir() if (path / "config.yaml").exists()
)
FILES = {
    "config.yaml": CONFIG + "model_defaults:\n  dialect: spark\nvariables:\n  least: 3\n",
    "models/a.sql": "MODEL (name s.a, kind FULL, audits (small, not_null(columns := (id))));\nSELECT 1 AS id, 2 AS n",
    "models/b.sql": "MODEL (name s.b, kind FULL);\nSELECT @STAR(s.a), @least AS minimum FROM s.a",
    "models/c.sql": "MODEL (name s.c, kind FULL, end yesterday);\nSELECT id FROM raw.t",
    "models/d.sql": "MODEL (name s.d, kind FULL);\nJINJA_QUERY_BEGIN;\nSELECT {{ one() }} AS x\nJINJA_END;",
    "models/e.sql": "MODEL (name s.e, kind FULL);\nSELECT @AND(id > 1, NULL) AS y FROM raw.t",
    "models/f.sql": "MODEL (name s.f, kind SEED (path '../seeds/f.csv'));",
    "seeds/f.csv": "id,name\n1,x\n",
    "macros/one.sql": "{% macro one() %}1{% endmacro %}",
    "audits/small.sql": "AUDIT (name small);\nSELECT * FROM @this_model WHERE n > 10",
    "external_models.yaml": "- name: raw.t\n  columns:\n    id: int\n",
}
MACRO = "from mergeplan import macro\n\n@macro()\ndef {name}(evaluator, *args):\n    return '{text}'\n"
TWO = MACRO.format(name="two", text="2")
CALL = "MODEL (name s.g, kind FULL);\nSELECT @two() AS x"
IN_FORKS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from mergeplan.planner import forked
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.project import model_files, remembered
from mergeplan.planner.project.loader import LoadOptions, load_project

remembered.AHEAD, forked.BATCH = 1, 1
remembered.count_processors = forked.count_processors = lambda: 2
parsed, from_forks, add = [], [], remembered.Remembered.add_entries
parse_models = model_files.parse_models
model_files.parse_models = lambda text, path, defaults: parsed.append(path) or parse_models(text, path, defaults)
remembered.Remembered.add_entries = lambda cache, entries: from_forks.extend(entries) or add(cache, entries)
root, cache = map(Path, sys.argv[1:])
load_project(root, datetime(2026, 1, 6, 7, 8, tzinfo=UTC), options=LoadOptions(cache=Cache(cache)))
print(len(parsed), len(from_forks))
"""


def edit_file(name: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[name]
    return {name: FILES[name].replace(old, new)}


EDITS = {
    "a variable": edit_file("config.yaml", "least: 3", "least: 4"),
    "a default": edit_file("config.yaml", "dialect: spark", "dialect: spark\n  owner: ann"),
    "a column of a table that a macro asks for": edit_file("models/a.sql", "2 AS n", "2 AS n, 3 AS more"),
    "a macro in Jinja": edit_file("macros/one.sql", "1{%", "2{%"),
    "a macro of the name of a built-in one": {"macros/own.py": MACRO.format(name="AND", text="7")},
    "a seed": edit_file("seeds/f.csv", "1,x", "1,y"),
    "an audit": edit_file("audits/small.sql", "n > 10", "n > 11"),
    "the audit that a model names, gone": edit_file("models/a.sql", "small, ", ""),
    "an external table": edit_file("external_models.yaml", "int", "bigint"),
    "a file moved": {"models/g.sql": "MODEL (name s.g, kind FULL);\nSELECT 1 AS one"},
}


def load(root: Path, cache: Path | None, now: datetime = NOW) -> Project:
    return load_project(root, now, options=LoadOptions(cache=Cache(cache)))


def content(project: Project) -> tuple[object, ...]:
    return project.models, project.audits, project.tests, project.files


@pytest.mark.parametrize("source", PROJECTS, ids=lambda path: path.name)
def test_every_project_is_read_the_same_from_the_cache(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(source, root)
    cold = content(load(root, None))

    assert [content(load(root, tmp_path / "cache")) for _ in range(2)] == [cold, cold]


@pytest.mark.parametrize("source", [*PROJECTS, None], ids=lambda path: path.name if path else "macros and columns")
def test_every_project_is_read_the_same_in_forks(source: Path | None, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(source, root) if source else project_of(root, {**FILES, "macros/two.py": TWO, "models/g.sql": CALL})
    cold = content(load(root, None))

    # another process, because this one has threads
    done = subprocess.run(
        [sys.executable, "-c", IN_FORKS, root, tmp_path / "cache"], capture_output=True, text=True, timeout=120
    )

    assert (done.stderr, done.returncode) == ("", 0)
    parsed_by_parent, parsed_by_forks = done.stdout.split()
    assert int(parsed_by_parent) < int(parsed_by_forks)
    assert content(load(root, tmp_path / "cache")) == cold


def test_a_file_that_did_not_change_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project_of(tmp_path / "project", FILES)
    first = load(root, tmp_path / "cache")
    parsed: list[str] = []

    def note_parse(text: str, path: str, defaults: Defaults) -> Said:
        parsed.append(path)
        return parse_models(text, path, defaults)

    monkeypatch.setattr(model_files, "parse_models", note_parse)

    assert content(load(root, tmp_path / "cache")) == content(first)
    assert parsed == []
    project_of(root, {**FILES, **edit_file("models/c.sql", "SELECT id", "SELECT id + 1 AS id")})
    assert load(root, tmp_path / "cache").models["s.c"].sql == "SELECT id + 1 AS id FROM raw.t"
    assert parsed == ["models/c.sql"]


def test_of_a_file_that_did_not_change_no_text_is_gone_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of what is right need not be known: 5,000 models, gone through each time, take a second."""
    root = project_of(tmp_path / "project", FILES)
    first = load(root, tmp_path / "cache")
    read: list[str] = []

    def note_read(source: SourceText) -> Tokens:
        read.append(source.path)
        return tokenize(source)

    monkeypatch.setattr(tokens, "tokenize", note_read)

    assert content(load(root, tmp_path / "cache")) == content(first)
    assert read == []


@pytest.mark.parametrize("edit", EDITS)
def test_what_changes_what_a_file_says_is_seen_although_the_file_is_the_same(edit: str, tmp_path: Path) -> None:
    root = project_of(tmp_path / "project", FILES)
    before = load(root, tmp_path / "cache")
    project_of(root, {**FILES, **EDITS[edit]})

    warm = load(root, tmp_path / "cache")

    assert content(warm) == content(load(root, None))
    assert content(warm) != content(before)


def test_a_date_that_moves_is_another_one_the_next_day(tmp_path: Path) -> None:
    root = project_of(tmp_path / "project", FILES)
    today = load(root, tmp_path / "cache").models["s.c"].schedule.end

    tomorrow = load(root, tmp_path / "cache", NOW + timedelta(days=1)).models["s.c"].schedule.end

    assert today and tomorrow and tomorrow - today == timedelta(days=1)


def test_a_macro_of_the_projects_own_is_asked_every_time(tmp_path: Path) -> None:
    files = {"models/m.sql": "MODEL (name s.m, kind FULL);\nSELECT @answer() AS x"}
    root = project_of(tmp_path / "project", {**files, "macros/m.py": MACRO.format(name="answer", text="1")})
    assert load(root, tmp_path / "cache").models["s.m"].sql == "SELECT 1 AS x"
    project_of(root, {"macros/m.py": MACRO.format(name="answer", text="2")})

    assert load(root, tmp_path / "cache").models["s.m"].sql == "SELECT 2 AS x"


def test_a_wrong_file_is_told_every_time(tmp_path: Path) -> None:
    root = project_of(tmp_path / "project", {**FILES, **edit_file("models/c.sql", "SELECT id", "SELECT FROM")})

    told = []
    for _ in range(2):
        with pytest.raises(Exception, match=r"models/c\.sql:2") as error:
            load(root, tmp_path / "cache")
        told.append(str(error.value))

    assert told[0] == told[1]
