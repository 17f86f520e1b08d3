"""Which classes of materializations/ are found, by which names, and what of them stops a model from being read."""

from __future__ import annotations

from textwrap import indent

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from tests.planner.parsing.test_custom_kind import CLASS, FILE, HEAD, MERGE, REPLACE, code, model

KIND = '''
class OwnKind(CustomKind):
    """Has a key."""

    _key: t.List[exp.Expression]

    @model_validator(mode="after")
    def _validate_model(self):
        self._key = list_of_fields_validator(self.materialization_properties.get("key"), {"dialect": self.dialect})
        if not self.key:
            raise ValueError("key must be specified")
        return self

    @property
    def key(self) -> t.List[exp.Expression]:
        return self._key
'''
HOISTED = f"assert isinstance(model.kind, OwnKind)\n{MERGE.format('model.kind.key')}"


def model_of_kind(kind: str, insert: str = HOISTED) -> Model:
    text = code(insert, HEAD + kind).replace("(CustomMaterialization)", "(CustomMaterialization[OwnKind])")
    return model("CUSTOM (materialization Own, materialization_properties (key = (id, n)))", {FILE: text})


def test_a_property_of_a_kind_of_ones_own_is_followed() -> None:
    assert model_of_kind(KIND) == model("INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, n))")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("def key(", "def time_column(", "the class `OwnKind` has `@property`, which"),
        ("def key(", "def is_incremental(", "the class `OwnKind` has `@property`, which"),
        ("_key: t.List", "key: t.List", "the class `OwnKind` has `key: t.List[exp.Expression]`, which"),
        ("self._key = ", "self.batch_size = ", "`self.batch_size = "),
        (
            'mode="after")\n    def _validate_model(self)',
            'mode="after")\n    def f(cls, values)',
            "`f` is no validator",
        ),
        (
            "        return self._key",
            "        print(1)\n        return self._key",
            "`key` does more than return a value",
        ),
        ("(CustomKind)", "(Model)", "`OwnKind` is no class of this file that derives from `CustomKind`"),
    ],
)
def test_a_kind_that_does_more_is_refused(old: str, new: str, why: str) -> None:
    with pytest.raises(ProjectError) as error:
        model_of_kind(KIND.replace(old, new, 1))

    assert why in str(error.value)


FULL = code(REPLACE)
CLASSES = {
    "another method": (
        f"{FULL}\n    def delete(self, name, **kwargs):\n        pass\n",
        "has `delete` beside `insert`",
    ),
    "a start": (f"{FULL}\n    def __init__(self):\n        pass\n", "has `__init__` beside `insert`"),
    "an attribute": (FULL.replace('"own"\n', '"own"\n    insert_it = 1\n'), "has `insert_it = 1` beside `insert`"),
    "a mixin": (FULL.replace("(CustomM", "(Mixin, CustomM"), "derives from more than `CustomMaterialization`"),
    "a base of its own": (FULL.replace("(CustomM", "(Base"), "derives from `Baseaterialization` and not from"),
    "a decorator": (FULL.replace("    def insert", "    @wrapped\n    def insert"), "`insert` is no plain method"),
    "an unknown parameter": (FULL.replace("model: Model", "a_model: Model"), "SQLMesh passes no `a_model` to `insert`"),
    "code at the top": (f"{FULL}\n\nOwn.insert = print\n", "`Own.insert = print` runs when the file is imported"),
    "a call at the top": (f"{FULL}\n\nDONE = patch(Own)\n", "`DONE = patch(Own)` runs when the file is imported"),
    "a class in an if": (HEAD + "if KEYS:\n" + indent(CLASS + " " * 8 + REPLACE, "    "), "when the file is imported"),
    "no insert": (HEAD + '\n\nclass Own(CustomMaterialization):\n    NAME = "own"\n', "has no `insert`"),
}


@pytest.mark.parametrize("case", CLASSES)
def test_a_class_that_may_do_more_is_refused(case: str) -> None:
    text, why = CLASSES[case]

    with pytest.raises(ProjectError) as error:
        model("CUSTOM (materialization own)", {FILE: text})

    assert "The materialization `own` is not supported: at materializations/own.py:" in str(error.value)
    assert why in str(error.value)


def test_a_class_is_found_by_its_name_in_any_case() -> None:
    own = code(REPLACE).replace('    NAME = "own"\n', "").replace("import CustomKind, CustomMaterialization,", "import")
    alias = "from sqlmesh import CustomMaterialization as Base\n"
    text = own.replace("logger =", f"{alias}logger =").replace("(CustomMaterialization)", "(Base)")
    text = text.replace("    def insert", "    @t.override\n    def insert")
    dotted = own.replace("logger =", "import sqlmesh as sm\nlogger =").replace("(CustomM", "(sm.CustomM")

    assert model("CUSTOM (materialization 'OWN')", {FILE: text}) == model("FULL")
    assert model("CUSTOM (materialization own)", {FILE: dotted}) == model("FULL")


def test_a_name_is_of_one_class() -> None:
    files = {FILE: FULL, "materializations/more/b.py": FULL.replace('"own"', '"OWN"')}

    with pytest.raises(
        ProjectError, match=r"^models/t.sql:3: There are two materializations `own`: materializations/o"
    ):
        model("CUSTOM (materialization own)", files)
    with pytest.raises(ProjectError, match=r"There is no materialization `ow` in .*Did you mean `own`"):
        model("CUSTOM (materialization ow)", {FILE: FULL})
    with pytest.raises(ProjectError, match=r"^models/t.sql:3: CUSTOM needs a `materialization`"):
        model("CUSTOM", {FILE: FULL})


def test_a_file_that_cannot_be_read_is_an_error_of_its_own() -> None:
    computed = FULL.replace('NAME = "own"', "NAME = KEYS[0]")

    with pytest.raises(ProjectError, match=r"^materializations/b.py:1: This is not Python: "):
        model("CUSTOM (materialization own)", {FILE: FULL, "materializations/b.py": "class"})
    with pytest.raises(ProjectError, match=r"the name of `Own` is computed"):
        model("CUSTOM (materialization own)", {FILE: computed})
    assert model("FULL", {FILE: "class"}) == model("FULL")
