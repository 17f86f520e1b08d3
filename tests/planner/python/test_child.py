"""What the process of a project's code imports, and where from."""

from __future__ import annotations

from pathlib import Path

from mergeplan.planner.python.host import Child

MACRO = """\
from sqlglot import exp
from mergeplan import macro

@macro()
def one(evaluator):
    return exp.Literal.number(1)
"""


def test_sqlglot_is_imported_where_code_first_needs_it(tmp_path: Path) -> None:
    child = Child(tmp_path, {"a.py": "import sys\nraise ValueError('sqlglot' in sys.modules)\n", "b.py": MACRO})

    before = child.ask({"op": "load", "paths": ["a.py"]}, 60)
    after = child.ask({"op": "load", "paths": ["b.py", "a.py"]}, 60)
    child.stop()

    assert [error["message"] for error in (*before["errors"], *after["errors"])] == [
        "ValueError: False",
        "ValueError: True",
    ]


def test_no_file_of_a_project_stands_for_sqlglot(tmp_path: Path) -> None:
    (tmp_path / "sqlglot").mkdir()
    (tmp_path / "sqlglot/__init__.py").write_text("exp = None\n")
    (tmp_path / "sqlglot.py").write_text("exp = None\n")
    child = Child(tmp_path, {"sqlglot.py": "exp = None\n", "macros/b.py": MACRO})

    loaded = child.ask({"op": "load", "paths": ["macros/b.py"]}, 60)
    answer = child.ask({"op": "macro", "name": "one", "args": [], "kwargs": {}}, 60)
    child.stop()

    assert (loaded["errors"], answer) == ([], ["1"])
