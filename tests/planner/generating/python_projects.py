"""Random projects of Python models, macros and helpers, and random edits of their files."""

from __future__ import annotations

import random

HELPERS = ("lib/a.py", "lib/b.py", "lib/deep/c.py", "shared.py")
MODELS = tuple(f"models/m{number}.py" for number in range(5))
PACKAGES = ("cronsim", "math", "pandas")
Files = dict[str, str]


def generate_project(rng: random.Random) -> Files:
    """The Python files of a project, and the data and SQL files beside them."""
    files = {path: write_helper(rng, path) for path in HELPERS if rng.random() < 0.8}
    files |= {path: write_model(rng, path, files) for path in MODELS if rng.random() < 0.8}
    files["macros/m.py"] = write_macro(rng)
    files["models/s.sql"] = f"MODEL (name s.s, kind FULL);\nSELECT {rng.choice(('1', '@one()', '@AND(1, 2)'))} AS id"
    files |= {f"data/{name}.csv": str(rng.randrange(3)) for name in "xy" if rng.random() < 0.7}
    return files


def edit_project(rng: random.Random, files: Files) -> Files:
    """The files after an edit or two."""
    edited = dict(files)
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice((*HELPERS, *MODELS, "macros/m.py", "data/x.csv", "data/y.csv", "new"))
        if path == "new":
            name = rng.choice(("lib/late.py", "lib/__init__.py", "cronsim.py", "json.py", "other.py", "lib/a/more.py"))
            edited[name] = f"VALUE = {rng.randrange(3)}\n"
        elif path in edited and rng.random() < 0.2:
            del edited[path]
        elif path in HELPERS:
            edited[path] = write_helper(rng, path)
        elif path in MODELS:
            edited[path] = write_model(rng, path, edited)
        elif path.startswith("macros/"):
            edited[path] = write_macro(rng)
        else:
            edited[path] = str(rng.randrange(3))
    return edited


def write_helper(rng: random.Random, path: str) -> str:
    """Constants and functions; now and then an import that does more than define."""
    others = [other for other in HELPERS if other < path and rng.random() < 0.4]
    imports = [f"from {module(other)} import VALUE as V{n}" for n, other in enumerate(others)]
    body = [f"VALUE = {rng.randrange(3)}", f'COLUMNS = {{"id": "int", "n{rng.randrange(2)}": "text"}}']
    value = rng.choice(["VALUE", *(f"V{n}" for n in range(len(others))), 'open("data/x.csv").read()'])
    body.append(f"def work(x):\n    return {value}")
    if rng.random() < 0.1:
        body.append(rng.choice(('COLUMNS["more"] = "int"', "print()", "VALUE += 1")))
    return "\n".join((*imports, *body, ""))


def write_model(rng: random.Random, path: str, files: Files) -> str:
    """A model: what it is called with is written out, mostly; its code reaches helpers, data and packages."""
    helpers = [other for other in HELPERS if other in files]
    helper, package = (rng.choice(helpers) if helpers else ""), rng.choice(PACKAGES)
    imports = ["from sqlmesh import model", f"import {package}", "import os"]
    columns, code = '{"id": "int"}', [f'"data/{rng.choice("xy")}.csv"', f"{package}.x", "1", 'context.var("least")']
    if helper:
        imports.append(f"from {module(helper)} import COLUMNS, work")
        columns, code = rng.choice((columns, "COLUMNS")), [*code, "work(1)", "work(2)"]
    if rng.random() < 0.2:
        imports.append(rng.choice(("import shared", "from lib import a", "import lib.late", "from lib.a import more")))
        code += ["shared.VALUE", "a.VALUE", "lib.late", '__import__("lib.b")']
    about = rng.choice(('"one"', '"two"', 'os.environ["PATH"][:0]', 'f"{1}"'))
    lines = [rng.choice(code) for _ in range(2)]
    if rng.random() < 0.3:
        lines.append("context.table('s.s')")
    return "\n".join((
        *imports, f'\n@model("s.{path[7:-3]}", kind="FULL", columns={columns}, description={about})',
        "def execute(context, **kwargs):", *(f"    {line}" for line in lines), "",
    ))  # fmt: skip


def write_macro(rng: random.Random) -> str:
    """A macro, and now and then another one that hides a built-in."""
    names = ["one", *(["AND"] if rng.random() < 0.3 else [])]
    return "from sqlmesh import macro\n" + "".join(
        f"\n@macro()\ndef {name}(evaluator, *args):\n    return '{rng.randrange(3)}'\n" for name in names
    )


def module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
