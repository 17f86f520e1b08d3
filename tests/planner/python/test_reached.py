"""An edit of anything that a function reaches changes its digest; an edit of what it does not reach does not."""

from __future__ import annotations

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.python.reached import trace_code

FILES = {
    "models/a.py": '''
"""A model."""
import logging
from functools import lru_cache

import numpy as np
from sqlmesh import model

import lib.deep.far as far
from helpers import LIMITS, doubled
from lib import near

logger = logging.getLogger(__name__)
RATE = 3


class Money:
    unit = "cent"

    def worth(self, x):
        return x * RATE


@model("shop.a", kind="FULL", columns={"x": "int"})
def execute(context, start, end, **kwargs):
    """Rows."""
    table = context.table("shop.items")
    return Money().worth(doubled(LIMITS["low"])) + far.away(np.abs(near.by(table)))


def unreached():
    return 1
''',
    "helpers.py": """
LIMITS = {"low": 1}

def halved(x):
    return x / 2

def doubled(x):
    return halved(x) * 4

def unreached():
    return 1
""",
    "lib/deep/far.py": "FAR = 1\n\ndef away(x):\n    return x + FAR\n\ndef unreached():\n    return 2\n",
    "lib/near.py": "from .deep.side import *\n\ndef by(x):\n    return beside(x)\n",
    "lib/deep/side.py": "def beside(x):\n    return x\n\ndef hidden():\n    return 3\n",
    "other.py": "import os\nos.environ['X'] = '1'\n",
}


def digest(**edits: tuple[str, str]) -> str:
    """The digest of `execute` after edits: path (with __ for / and no suffix) -> (old, new)."""
    files = dict(FILES)
    for name, (old, new) in edits.items():
        path = f"{name.replace('__', '/')}.py"
        assert old in files[path]
        files[path] = files[path].replace(old, new, 1)
    return trace_code(files, "models/a.py", "execute", lambda name: f"{name} 1.0").digest


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("models__a", "LIMITS[", "2 * LIMITS["),
        ("models__a", "RATE = 3", "RATE = 4"),
        ("models__a", '"cent"', '"euro"'),
        ("models__a", "import lib.deep.far as far", "import helpers as far"),
        ("models__a", "np.abs", "np.exp"),
        ("models__a", "import numpy as np", "import pandas as np"),
        ("models__a", "start, end, **kwargs", "end, start, **kwargs"),
        ("helpers", '{"low": 1}', '{"low": 2}'),
        ("helpers", "x / 2", "x / 3"),
        ("helpers", "halved(x) * 4", "halved(x) * 5"),
        ("helpers", "LIMITS =", "import other\nLIMITS ="),
        ("lib__deep__far", "FAR = 1", "FAR = 2"),
        ("lib__deep__far", "x + FAR", "x - FAR"),
        ("lib__near", "beside(x)", "beside(x) + 1"),
        ("lib__deep__side", "return x", "return -x"),
        ("lib__deep__side", "return 3", "return 4"),  # a star takes all there is
    ],
)
def test_an_edit_of_what_is_reached_counts(path: str, old: str, new: str) -> None:
    assert digest(**{path: (old, new)}) != digest()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("models__a", "def unreached():\n    return 1", "def unreached():\n    return 2"),
        ("models__a", '"""Rows."""', '"""Other words."""'),
        ("models__a", '"""A model."""', "# said otherwise"),
        ("models__a", "RATE = 3", "RATE  =  (3)  # three"),
        ("models__a", 'kind="FULL"', 'kind="FULL", description="what it says"'),
        ("helpers", "def unreached():\n    return 1", "def unreached():\n    return 2"),
        ("lib__deep__far", "return 2", "return 22"),
        ("other", "'1'", "'2'"),
    ],
)
def test_an_edit_of_what_is_not_reached_does_not_count(path: str, old: str, new: str) -> None:
    assert digest(**{path: (old, new)}) == digest()


@pytest.mark.parametrize(
    "code",
    [
        "return getattr(helpers, name)()",
        "f = helpers\n    return f.unreached()",
        "import importlib\n    return importlib.import_module('helpers').unreached()",
        "return eval('helpers.unreached()')",
        "return globals()['unreached']()",
        "import sys\n    return sys.modules['helpers'].unreached()",
        "return helpers.doubled.__globals__['unreached']()",
        "from helpers import unreached as doubled\n    return doubled()",
        "import helpers as other\n    return other.unreached()",
        "return [each for each in vars(helpers).values()]",
        "return (lambda: helpers.unreached)()()",
        "__import__('helpers').unreached()",
        "import pydoc\n    return pydoc.locate('helpers').unreached()",
        "import helpers as h; x = [h]\n    return x[0].unreached()",
        "return context.frame.query('x > @helpers.unreached()')",
        "return context.frame.query(name)",
        "import duckdb\n    return duckdb.sql('FROM helpers')",
        "return pandas.eval('helpers')",
        "return numexpr.evaluate('helpers*2')",
        "return polars.sql(name)",
        "try:\n        1 / 0\n    except Exception as e:\n        return e.__traceback__.tb_frame.f_globals[name]",
    ],
)
def test_code_that_comes_at_other_code_by_a_detour_counts_it(code: str) -> None:
    model = f"import helpers\n\ndef execute(context, name='unreached'):\n    {code}\n"
    edited = FILES["helpers.py"].replace("return 1", "return 2")

    before = trace_code({**FILES, "models/a.py": model}, "models/a.py", "execute")
    after = trace_code({**FILES, "models/a.py": model, "helpers.py": edited}, "models/a.py", "execute")

    assert before.digest != after.digest


@pytest.mark.parametrize(
    "acting",
    [
        "unreached = doubled()",
        "if 1 > 0:\n    from lib.near import by as doubled",
        "try:\n    import x\nexcept ImportError:\n    pass",
        "LIMITS['low'] = 2",
        "LIMITS.update(low=2)",
        "@register\ndef another():\n    pass",
        "class Plugin(Base):\n    pass",
        "for each in LIMITS:\n    print(each)",
        "x = (y := 1)",
        "from lib.near import *",
        "@doubled.getter\ndef another():\n    pass",
        "LOW = sorted(LIMITS, key=doubled)",
        "class Shelf:\n    LIMITS['low'] = 2",
        "from enum import Enum\nclass Side(Enum):\n    LOW = 2\n    def __init__(self, x):\n        LIMITS['low'] = x",
        "def another(x: doubled(2)):\n    pass",
        "low: doubled(2) = 1",
        "class Shelf:\n    def __class_getitem__(cls, key):\n        return key\nbook = Shelf[1]",
        "LOW = 1\nLEAST = LOW\nLOW = 2",
        "from lib.near import steps\nfirst = steps >> 2",
        "from lib.near import steps\nfirst = steps['low']",
        "from lib.near import steps\ndef another(x=list(steps)):\n    pass",
        "import lib.near\nfirst = f'{lib.near.steps}'",
        "from lib.near import steps\nfirst = [step for step in steps]",
        "def halved(x):\n    return x",
        "from lib.near import by as LIMITS",
        "from lib.flags import TYPE_CHECKING\nif TYPE_CHECKING:\n    LOW = 1",
    ],
)
def test_a_module_whose_import_acts_counts_whole(acting: str) -> None:
    helpers = f"{FILES['helpers.py']}\n{acting}\n"
    files = {**FILES, "helpers.py": helpers}
    edited = {**FILES, "helpers.py": helpers.replace("return 1", "return 2")}

    assert trace_code(files, "models/a.py", "execute").digest != trace_code(edited, "models/a.py", "execute").digest


def test_the_order_counts_in_which_modules_that_act_are_imported() -> None:
    acting = {f"lib/{name}.py": f"from helpers import LIMITS\nLIMITS['low'] = {name!r}\n" for name in ("p", "q")}
    model = "import lib.p\nimport lib.q\nfrom helpers import LIMITS\n\ndef execute(context):\n    return LIMITS\n"
    turned = model.replace("import lib.p\nimport lib.q", "import lib.q\nimport lib.p")

    digests = [
        trace_code({**FILES, **acting, "models/a.py": text}, "models/a.py", "execute").digest
        for text in (model, turned)
    ]

    assert digests[0] != digests[1]


def test_a_variable_that_only_a_text_of_pandas_names_counts() -> None:
    model = "LIMIT = 5\n\ndef execute(context):\n    return context.fetchdf('SELECT 1 AS x').query('x > @LIMIT')\n"
    digests = {
        trace_code({"models/a.py": model.replace("5", limit)}, "models/a.py", "execute").digest for limit in "567"
    }

    assert len(digests) == 3


def test_a_package_that_is_imported_on_the_way_counts() -> None:
    quiet, acting = {**FILES, "lib/__init__.py": ""}, {**FILES, "lib/__init__.py": "import os\nos.umask(0)\n"}

    assert trace_code(quiet, "models/a.py", "execute").digest != trace_code(acting, "models/a.py", "execute").digest


def test_a_name_is_followed_through_the_package_that_passes_it_on() -> None:
    files = {
        "models/a.py": "from lib import near\n\ndef execute(context):\n    return near()\n",
        "lib/__init__.py": "from .places import near, far\n",
        "lib/places.py": "def near():\n    return 1\n\ndef far():\n    return 1\n",
    }
    edited = {**files, "lib/places.py": "def near():\n    return 2\n\ndef far():\n    return 1\n"}
    elsewhere = {**files, "lib/places.py": "def near():\n    return 1\n\ndef far():\n    return 2\n"}
    digests = [trace_code(sources, "models/a.py", "execute").digest for sources in (files, edited, elsewhere)]

    assert digests[0] != digests[1]
    assert digests[0] == digests[2]


def test_the_version_of_a_package_counts_and_that_of_another_does_not() -> None:
    def digest_with(**versions: str) -> str:
        return trace_code(FILES, "models/a.py", "execute", lambda name: versions.get(name, "1")).digest

    assert digest_with(numpy="2") != digest_with()
    assert digest_with(pandas="2") == digest_with()


def test_tables_are_found_wherever_the_code_names_them() -> None:
    files = {
        "models/a.py": "from helpers import read\n\ndef execute(context):\n    read(context)\n    context.table(X)\n",
        "helpers.py": "def read(context):\n    return context.resolve_table('Shop.Items')\n",
    }

    trace = trace_code(files, "models/a.py", "execute")

    assert trace.tables == {"shop.items"}
    assert [str(place) for place in trace.unclear] == ["models/a.py:5"]
    assert trace.files == {"models/a.py", "helpers.py"}


def test_a_table_may_be_named_by_a_constant_of_the_module() -> None:
    once = "ITEMS = 'shop.items'\n\ndef execute(context):\n    return context.resolve_table(ITEMS)\n"
    twice = once.replace("\n\n", "\nITEMS += '_x'\n\n", 1)

    assert trace_code({"models/a.py": once}, "models/a.py", "execute").tables == {"shop.items"}
    assert trace_code({"models/a.py": twice}, "models/a.py", "execute").unclear


def test_a_reached_file_that_is_not_python_is_told() -> None:
    with pytest.raises(ProjectError, match=r"^helpers.py:2: This is not Python: "):
        trace_code({**FILES, "helpers.py": "x = 1\ndef f(:\n"}, "models/a.py", "execute")
