"""Code that may open a file of which it does not say the name may open any file; all other code may not."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator

import pytest

from mergeplan.planner.python.files.known_packages import OPENERS, WHOLE_OR_IN_PART, opens_no_file
from mergeplan.planner.python.reached import trace_code

HEAD = """
import configparser
import functools
import io
import json
import logging
import operator
import os
import sys
import xml.etree.ElementTree as ET
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import requests
import yaml
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from sqlglot import exp
from sqlmesh import ExecutionContext, model

import lib.places
from lib import places
from lib.places import DATA, FILES, load, system

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
RATES = HERE.parent / "data" / "rates.csv"
NAMES = {"rates": "data/rates.csv", "other": "data/other.csv"}


@model("s.p", kind="FULL", columns={"x": "int"})
def execute(context: ExecutionContext, start: datetime, **kwargs) -> pd.DataFrame:
    p = Path(kwargs["name"])
    ps = [kwargs["name"]]
    BODY
"""
HEAD = HEAD.replace(
    '    p = Path(kwargs["name"])\n    ps = [kwargs["name"]]\n', "    p, ps = kwargs['name'], kwargs['names']\n"
)
LIB = """
import os as system
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
FILES = ["data/rates.csv", "data/other.csv"]


def load(path):
    with open(path) as file:
        return file.read()
"""


def unknown(body: str, **files: str) -> list[str]:
    """The accesses of a model with this body that may be of any file, with their lines in the body."""
    first = HEAD.split("    BODY")[0].count("\n")
    texts = {"models/p.py": HEAD.replace("BODY", body.replace("\n", "\n    ")), "lib/places.py": LIB, **files}
    accesses = trace_code(texts, "models/p.py", "execute").reads.unknown
    lines = {"models/p.py": first}
    return [f"{a.text} {a.place.path}:{a.place.line - lines.get(a.place.path, 0)}" for a in accesses]


@pytest.mark.parametrize(
    "body",
    [
        "c = configparser.ConfigParser(); c.read(p); return c['a']['b']",
        "return ET.parse(p)",
        "return io.FileIO(p).read()",
        "return pd.ExcelFile(p).parse()",
        "return np.fromregex(p, 'x', [('a', int)])",
        "return pa.memory_map(p)",
        "f = Path(p).read_text; return f()",
        "return list(map(Path.read_text, map(Path, ps)))",
        "return partial(open, p)().read()",
        "return getattr(Path(p), 'read_' + 'text')()",
        "return getattr(Path(p), 'read_text')()",
        "return Path(p).stat().st_size",
        "return Path(p).exists()",
        "return os.path.exists(p)",
        "return os.path.getsize(p)",
        "return os.stat(p).st_size",
        "return os.open(p, os.O_RDONLY)",
        "return os.listdir('.')",
        "return [e.name for e in os.scandir('data')]",
        "return next(os.walk('data'))",
        "return [open(x) for x in ps]",
        "return functools.reduce(getattr, ['path', 'exists'], os)(p)",
        "return operator.methodcaller('read_csv', p)(pd)",
        "return getattr(pd, 'read_csv')(p)",
        "read = pd.read_csv; return read(p)",
        "return {'csv': pd.read_csv}['csv'](p)",
        "return json.codecs.open(p).read()",
        "return logging.os.stat(p)",
        "import enum; return enum.bltns.open(p)",
        "sys.path.insert(0, 'lib'); import places as own; return own",
        "import dotenv; dotenv.load_dotenv(); return os.environ['X']",
        "import duckdb; return duckdb.sql('SELECT 1').df()",
        "import pickle; return pickle.loads(kwargs['x'])",
        "import joblib; return joblib.load('model.pkl')",
        "return np.load('x.npy', allow_pickle=True)",
        "return yaml.load('a', Loader=yaml.UnsafeLoader)",
        "import subprocess; return subprocess.check_output(['cat', 'data/rates.csv'])",
        "import importlib.resources as r; return r.files('lib').joinpath('x').read_text()",
        "import http.cookiejar as c; return c.MozillaCookieJar(p).load()",
        "return DATA.__class__(p).read_text()",
        "import pkgutil; return pkgutil.get_data('lib', 'x.csv')",
        "import inspect; return inspect.getsource(load)",
        "return load(p)",
        "return system.stat(p)",
        "return places.system.stat(p)",
        "return lib.places.system.listdir('.')",
        "m = places; return m.system.stat(p)",
        "return [x.read_text() for x in (DATA / p).parent.iterdir()]",
        "return [x.stat() for x in DATA.parent.iterdir()]",
        "return (places.DATA / p).read_text()",
        "return HERE.joinpath(p).read_text()",
        "return pd.read_csv(HERE / p)",
        "return pd.read_csv(f'data/{p}')",
        "return pd.read_csv('data/' + p)",
        "return pd.read_csv('file:///srv/' + p)",
        "return pd.read_csv('data/rates.csv' if p else p)",
        "path = 'data/rates.csv'\npath += p\nreturn open(path)",
        "return open(*ps)",
        "return open(file=p)",
        "return open(kwargs.get('x', 'data/rates.csv'))",
        "return pd.read_parquet(HERE)",
        "return pd.read_parquet('.')",
        "class Reader(Path): pass\nreturn Reader(p).read_text()",
        "class Box:\n    path = Path('data')\nreturn list(Box.path.iterdir())",
        "box = [Path('data')]; return list(box[0].iterdir())",
        "def inner(q=Path('data')):\n    return list(q.iterdir())\nreturn inner()",
        "x = lambda: Path('data'); return list(x().iterdir())",
        "global q\nq = Path('data')\nreturn q",
        "df = pd.DataFrame({'a': ps}); return df.a.map(open)",
        "df = pd.DataFrame(); return df.query('a in @pd.read_csv(\"x\").a')",
        "return df_of(p)",
        "return pd.DataFrame().style.from_custom_template('data', 'x.tpl')",
        "return kwargs['q'].read_text()",
        "return kwargs['q'].is_file()",
        "x: open(kwargs['y']).read() = 1; return x",
        "with open(p) as f: return f.read()",
        "for i in range(3):\n    with Path(f'{i}') as q: return q",
        "import urllib.request as u; return u.urlopen('file:///etc/' + p)",
        "from glob import glob as g; return g(p)",
        "match p:\n    case Path() as q: return q.stat()",
        "return [q.with_name(p).read_text() for q in DATA.glob('*.csv')]",
    ],
)
def test_code_that_may_open_any_file_is_found(body: str) -> None:
    assert unknown(body)


@pytest.mark.parametrize(
    "body",
    [
        "return pd.DataFrame({'x': [1]}).groupby('x').agg('sum').reset_index()",
        "return context.fetchdf(f\"SELECT * FROM {context.table('s.t')} WHERE d = '{start.date()}'\")",
        "return context.spark.table(context.table('s.t')).withColumn('x', F.array(F.lit(1), F.struct('y')))",
        "return context.spark.createDataFrame([(1,)]).select(F.col('x'), F.row_number().over(Window.orderBy('x')))",
        "logger.info('from %s', start); return json.loads('{}')",
        "import re, math, uuid, random, hashlib, decimal\nreturn re.sub('a', 'b', hashlib.md5(b'x').hexdigest())",
        "return (start - timedelta(days=1)).isoformat() + os.environ.get('X', '') + os.path.join('a', 'b')",
        "return exp.select('a').from_('t').where(exp.column('x').eq(1)).sql('spark')",
        "return np.random.default_rng(1).normal(size=3) + np.linalg.norm([1.0]) + np.where([True], 1, 2)",
        "return requests.get('https://example.com', timeout=10).json()",
        "return pd.read_csv(f'https://example.com/{start}.csv')",
        "url = 'https://example.com'; return pd.read_json(url + '/x')",
        "return pd.read_csv(io.StringIO(requests.get('https://example.com').text))",
        "return pd.read_sql('SELECT 1', kwargs['connection'])",
        "return yaml.safe_load('a: 1')",
        "def inner(x: Path) -> Path | None:\n    return isinstance(x, Path)\nreturn inner(1)",
        "from sklearn.linear_model import LinearRegression\nreturn LinearRegression().fit([[1]], [1]).predict([[2]])",
        "@F.udf('int')\ndef twice(x):\n    return 2 * x\nreturn context.spark.range(3).select(twice('id'))",
        "import pandas.tseries.offsets as o; return pd.Timestamp(start) + o.MonthEnd(1)",
        "print(sys.version_info, file=sys.stderr); return pd.DataFrame().query('a > 1 and b == @start')",
        "try:\n    return json.loads('x')\nexcept ValueError as error:\n    logger.error(str(error))",
        # files whose names it says
        "return pd.read_csv('data/rates.csv')",
        "return RATES.read_text() if RATES.exists() else ''",
        "logger.info('reading %s', RATES)\nreturn pd.read_csv(str(RATES)), f'{RATES}', RATES.stem, RATES.parent.name",
        "return (DATA / 'rates.csv').read_text() + (places.DATA / 'x.json').open().read()",
        "return json.load(open(os.path.join(os.path.dirname(__file__), '..', 'data', 'x.json')))",
        "with RATES.open() as file: return pd.read_csv(file)",
        "return pd.read_csv(f'data/{start:%Y}.csv'), pd.read_csv('data/%s.csv' % p), pd.read_csv('{}.csv'.format(p))",
        "return [pd.read_csv(name) for name in FILES]",
        "return {key: pd.read_csv(HERE / name) for key, name in NAMES.items()}, pd.read_csv(NAMES[p])",
        "return [pd.read_csv(q).assign(name=q.stem) for q in sorted(DATA.glob('*.csv'))]",
        "return [q.read_text() for q in (DATA / 'deep').iterdir()]",
        "return pd.read_csv(DATA / context.var('which'))",
        "path = Path(__file__).resolve().parent / 'rates.csv'\nassert path.exists()\nreturn path.read_bytes()",
    ],
)
def test_code_that_says_which_files_it_opens_or_opens_none_is_clear(body: str) -> None:
    assert unknown(body) == []


@pytest.mark.parametrize(
    ("star", "body", "clear"),
    [
        ("pyspark.sql.functions", "context.spark.range(3).select(col('id'), len('a'))", True),
        ("pyspark.sql.functions", "open(kwargs['x'])", False),
        ("os", "stat(kwargs['x'])", False),
        ("io", "FileIO(kwargs['x'])", False),
        ("unheard_of", "1", False),
        (".places", "system.stat(kwargs['x'])", False),
        (".places", "DATA.parent.stat()", False),
        (".places", "(DATA / 'x.csv').stat()", True),
    ],
)
def test_a_star_brings_the_names_of_its_module(star: str, body: str, clear: bool) -> None:
    files = {
        "lib/p.py": f"from {star} import *\n\ndef execute(context, **kwargs):\n    return {body}\n",
        "lib/places.py": LIB.split("def load")[0],
    }

    assert (trace_code(files, "lib/p.py", "execute").reads.unknown == []) == clear


def test_the_access_is_named_with_its_line() -> None:
    assert unknown("x = 1\nreturn Path(p).stat()") == ["Path(p).stat() models/p.py:2"]
    assert unknown("return load(p)") == ["open(path) lib/places.py:10"]


def test_what_code_does_not_reach_opens_nothing() -> None:
    lib = LIB + "\ndef walk(path):\n    return list(Path(path).rglob('*.*'))\n"

    assert unknown("return FILES", **{"lib/places.py": lib}) == []


def modules_within(module: types.ModuleType, dotted: str, depth: int = 3) -> Iterator[tuple[str, object]]:
    for name in dir(module):
        chain, value = f"{dotted}.{name}", getattr(module, name, None)
        if opens_no_file(chain):
            yield chain, value
            if depth and isinstance(value, types.ModuleType):
                yield from modules_within(value, chain, depth - 1)


@pytest.mark.filterwarnings("ignore")  # of what the packages have deprecated
def test_no_name_that_is_harmless_leads_to_one_that_opens_files() -> None:
    """Of every package in the table that is installed, what its names are in truth."""
    opening = {name: _value(name) for name in (*OPENERS, "io.FileIO", "os.scandir", "numpy.memmap", "pathlib.Path")}
    openers = [value for value in opening.values() if value is not None]
    leaks = []
    for package in WHOLE_OR_IN_PART:
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        for chain, value in modules_within(module, package):
            leads = isinstance(value, types.ModuleType) and value.__name__.split(".")[0] not in (
                package.split(".")[0],
                "grpc",  # inside pyspark where Spark Connect is loaded: it speaks to servers, and opens no file
                "colorama",  # inside structlog where it is installed, as by `make docs`: it colours a terminal
            )
            if any(value is opener for opener in openers) or (leads and not opens_no_file(f"{_name(value)}.x_y")):
                leaks.append(chain)

    assert leaks == []


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, types.ModuleType) else ""


def _value(dotted: str) -> object:
    module, _, name = dotted.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
