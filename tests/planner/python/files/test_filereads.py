"""A file of the project that a Python model may read is a part of the model."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.project.loader import load_project
from mergeplan.planner.python.files.datafiles import DataFiles
from mergeplan.planner.python.files.filereads import FileNames, FileReads
from mergeplan.planner.python.reached import trace_code
from tests.planner.project.test_loader import NOW, project_of

HEAD = """
import os
import sqlite3
import subprocess
from glob import glob
from os import listdir
from pathlib import Path
from pathlib import Path as P

import numpy as np
import pandas as pd
from lib.loading import rates, read_any
from mergeplan import model

HERE = Path(__file__).parent
RATES = HERE.parent / "data" / "rates.csv"
TABLE = {"data": 1}


@model("s.p", kind="FULL", columns={{"x": "int"}})
def execute(context, start, end, execution_time, **kwargs):
    {body}
"""
LIB = """
from pathlib import Path


def rates():
    return (Path(__file__).parents[1] / "data" / "rates.csv").read_text()


def read_any(path):
    with open(path) as file:
        return file.read()
"""
FILES = {
    "data/rates.csv": "a,1\n",
    "data/other.csv": "b,2\n",
    "data/deep/list.json": "[1]",
    "notes.md": "hello\n",
    "models/t.sql": "MODEL (name s.t, kind FULL);\nSELECT 1 AS x\n",
    "lib/loading.py": LIB,
}


def digest_of(root: Path, body: str, **changed: str) -> str:
    """What `DataFiles` says of the model with this body in a project with these files."""
    files = project_files(body) | changed
    code = trace_code({name: text for name, text in files.items() if name.endswith(".py")}, "models/p.py", "execute")
    return DataFiles(project_of(root, files)).digest(code.reads, ())


def project_files(body: str) -> dict[str, str]:
    return FILES | {"models/p.py": HEAD.replace("{{", "{").replace("}}", "}").replace("{body}", body)}


def files_felt(tmp_path: Path, body: str) -> set[str]:
    """The files of which an edit changes the model."""
    before = digest_of(tmp_path, body)
    names = ("data/rates.csv", "data/other.csv", "notes.md", "models/t.sql")
    return {name for name in names if digest_of(tmp_path, body, **{name: FILES[name] + " "}) != before}


ONLY_RATES = {"data/rates.csv"}
DATA = {"data/rates.csv", "data/other.csv"}
ANY = DATA | {"notes.md", "models/t.sql"}


@pytest.mark.parametrize(
    ("body", "files"),
    [
        ("return 1", set()),
        ("return TABLE['data']", set()),
        ("return context.table('s.raw')", set()),
        ("return open('data/rates.csv').read()", ONLY_RATES),
        ("return open('./data/rates.csv').read()", ONLY_RATES),
        ("return open('../data/rates.csv').read()", ONLY_RATES),
        ("with open('data/rates.csv') as f: return pd.read_csv(f)", ONLY_RATES),
        ("return pd.read_csv('rates.csv').copy()", ONLY_RATES),
        ("return pd.read_csv(filepath_or_buffer='data/rates.csv')", ONLY_RATES),
        ("path = 'data/rates.csv'; return pd.read_csv(path)", ONLY_RATES),
        ("return RATES.read_text()", DATA),
        ("return P(os.path.join(os.path.dirname(__file__), '..', 'data', 'rates.csv')).read_bytes()", DATA),
        ("return rates()", DATA),
        ("return np.loadtxt('data/rates.csv')", ONLY_RATES),
        ("return context.spark.read.csv('data/rates.csv')", ONLY_RATES),
        ("return context.spark.read.format('csv').load(kwargs['path'])", ANY),
        ("return __import__('polars').scan('data/rates.csv')", ANY),
        ("return kwargs['lib'].scan('data/rates.csv')", ONLY_RATES),
        ("return kwargs['lib'].scan(f'data/{start}.csv')", DATA),
        ("return kwargs['lib'].scan('data/*.csv')", DATA),
        ("return open('data/' + kwargs['name']).read()", ANY),
        ("return open('data/' + kwargs['name'] + 'tes.csv').read()", DATA),
        ("return pd.read_csv(f'{start}tes.csv')", ONLY_RATES),
        ("return pd.read_csv('%stes.csv' % start)", ONLY_RATES),
        ("return [pd.read_csv(q) for q in HERE.parent.glob('**/r*.csv')]", ONLY_RATES),
        ("return [pd.read_csv(q) for q in HERE.parent.glob('*/')]", ANY),
        ("return [open(name) for name in ('data/rates.csv', 'notes.md')]", ONLY_RATES | {"notes.md"}),
        ("return RATES.with_suffix('.md').read_text()", DATA | {"notes.md"}),
        ("return P(kwargs['name']).stat()", ANY),
        ("return open(__file__).read()", set()),
        ("return read_any('data/rates.csv')", ANY),
        ("return [open(each) for each in kwargs['names']]", ANY),
        ("return map(open, ['data/rates.csv'])", ANY),
        ("return list(HERE.iterdir())", ANY),
        ("return listdir('.')", ANY),
        ("return glob('*')", ANY),
        ("return sqlite3.connect('data/some.db')", ANY),
        ("return subprocess.run(['cat', kwargs['name']])", ANY),
        ("return os.popen('cat data/rates.csv').read()", ANY),
        ("return Path('models/t.sql').read_text()", {"models/t.sql"}),
        ("return open('/etc/hostname').read()", set()),
        ("return pd.read_csv('https://example.com/rates.csv')", set()),
        ("return pd.read_sql('SELECT 1', kwargs['c'])", set()),
    ],
)
def test_an_edit_of_a_file_that_code_may_read_is_an_edit_of_the_model(
    body: str, files: set[str], tmp_path: Path
) -> None:
    assert files_felt(tmp_path, body) == files


def test_a_file_that_comes_is_an_edit_too(tmp_path: Path) -> None:
    before = digest_of(tmp_path, "return open('data/new.csv').read()")

    assert digest_of(tmp_path, "return open('data/new.csv').read()", **{"data/new.csv": "1"}) != before


def test_what_tools_keep_in_the_folder_is_no_file_of_the_project(tmp_path: Path) -> None:
    before = digest_of(tmp_path, "return list(HERE.iterdir())")
    new = {".mergeplan/x.db": "1", "venv/pyvenv.cfg": "", "venv/lib/a.txt": "1", "a/__pycache__/b.pyc": "1"}

    assert digest_of(tmp_path, "return list(HERE.iterdir())", **new, **{".git/index": "1", "derby.log": "1"}) == before


@pytest.mark.parametrize("body", ["return list(HERE.iterdir())", "return open('.rates/list.csv').read()"])
def test_a_hidden_file_is_a_file_of_the_project(body: str, tmp_path: Path) -> None:
    before = digest_of(tmp_path, body)

    assert digest_of(tmp_path, body, **{".rates/list.csv": "1"}) != before


@pytest.mark.parametrize("name", ["linked/rates.csv", "current.csv"])
def test_a_file_counts_by_the_name_of_a_link_to_it(name: str, tmp_path: Path) -> None:
    body = f"return open('{name}').read()"
    project_of(tmp_path, project_files(body))
    (tmp_path / "linked").symlink_to("data")
    (tmp_path / "data" / "round").symlink_to("..")
    (tmp_path / "current.csv").symlink_to("data/rates.csv")
    before = digest_of(tmp_path, body)

    assert digest_of(tmp_path, body, **{"data/rates.csv": "a,2\n"}) != before


SMALL = """
from mergeplan import model
@model("s.p", kind="FULL", columns={"x": "int"})
def execute(context, **kwargs):
    return kwargs["lib"].scan(context.var("which"))
"""


def test_a_file_that_a_variable_names_is_a_part_of_the_model(tmp_path: Path) -> None:
    config = (
        "gateways: {spark: {connection: {type: spark}}}\nvariables: {which: data/rates.csv, more: data/other.csv}\n"
    )

    def code(**changed: str) -> str:
        files = {"config.yaml": config, "models/p.py": SMALL, "data/rates.csv": "1", "data/other.csv": "2"} | changed
        python = load_project(project_of(tmp_path, files), NOW).models["s.p"].python
        return python.digest if python else ""

    before = code()
    assert code(**{"data/rates.csv": "9"}) != before
    assert code(**{"data/other.csv": "9"}) == before


@pytest.mark.parametrize("value", ["data", "./data/", "."])
@pytest.mark.parametrize(
    "body",
    [
        "return pd.read_parquet(context.var('which'))",
        "return [path.read_text() for path in Path(context.var('which')).iterdir()]",
        "return pd.read_parquet(context.blueprint_var('which'))",
    ],
)
def test_the_files_of_a_folder_that_a_variable_names_are_a_part_of_the_model(
    body: str, value: str, tmp_path: Path
) -> None:
    files = project_files(body)
    code = trace_code({name: text for name, text in files.items() if name.endswith(".py")}, "models/p.py", "execute")
    before, after = (
        DataFiles(project_of(tmp_path, files | {"data/rates.csv": rates})).digest(code.reads, (value,))
        for rates in ("a,1\n", "a,2\n")
    )

    assert before != after


def test_texts_that_look_like_patterns_name_the_files_that_they_match() -> None:
    """A query is such a text: it is compared with no more names than begin as it does."""
    files = FileNames(("data/rates.csv", "data/old/rates.csv", "SELECT a?.sql", "seeds/x.json"))
    reads = FileReads({"SELECT * FROM t WHERE a = '?'", "*/rates.c[st]v", "SELECT [ab][?].sql"})

    assert reads.select_files(files) == {"data/old/rates.csv", "data/rates.csv", "SELECT a?.sql"}
    assert list(files.like("SELECT * FROM t")) == []


WORDS = st.sampled_from(["a", "b", "data", "x.csv", "[q]", "*", "?", "[a-z]", "/", "./", "../", ".csv", " "])


@given(
    st.sets(st.text("ab/.[]", min_size=1, max_size=8), min_size=1), st.sets(st.lists(WORDS, max_size=4).map("".join))
)
def test_a_file_is_found_by_each_end_of_its_path_its_folders_its_kind_and_its_patterns(
    paths: set[str], texts: set[str]
) -> None:
    """The law that the index is held to, file by file."""
    matches = FileReads(set(texts), opens=True).select_files(FileNames(paths))

    for path in paths:
        parts = path.split("/")
        ends = {"/".join(parts[at:]) for at in range(len(parts))}
        above = {"/".join(parts[start:end]) for end in range(1, len(parts)) for start in range(end)}
        for text in {text.strip() for text in texts} - {""}:
            kind = text.startswith(".") and text.count(".") == 1 and path.endswith(text)
            if text in ends | above or kind or any(fnmatchcase(end, text) for end in ends):
                assert path in matches
