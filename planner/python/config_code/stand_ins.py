"""SQLMesh for a config.py: classes that record the arguments of their calls, and its other imports.

Anything from a package that is not installed is unknown: it may be passed on, and nothing may depend on it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, cast

from mergeplan.planner.python.config_code.references import START, References

TYPES = {
    "AzureSQLConnectionConfig": "azuresql",
    "BuiltInSchedulerConfig": "builtin",
    "GCPPostgresConnectionConfig": "gcp_postgres",
    "GithubCICDBotConfig": "github",
    "MWAASchedulerConfig": "mwaa",
}  # the others follow from the name: `SparkConnectionConfig` is `spark`
MODES = {"all_full": "full", "all_semi": "semi", "all_off": "off"}  # of `CategorizerConfig`
CATEGORIZED = ("external", "python", "sql", "seed")
_TYPED = re.compile(r"(\w+)(?:Connection|Scheduler)Config")


class Unknown:
    """An unknown value: its attributes and results are unknown too, and no value depends on it."""

    def __init__(self, what: str, references: References) -> None:
        self.__dict__.update(_why=f"{what} decides the configuration here.", _references=references)

    @classmethod
    def because(cls, why: str, references: References) -> Unknown:
        unknown = cls("", references)
        unknown.__dict__["_why"] = why
        return unknown

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        """Do nothing: the context was never entered."""

    def __mro_entries__(self, bases: Sequence[Any]) -> tuple[type, ...]:
        return (type("Unknown", (), {"__new__": lambda cls, *args, **keywords: self}),)

    def _refuse(self, *_: Any) -> Any:
        self._references.refuse(self._why)

    def refuse_test(self) -> None:
        """Refuse `is`, which calls no method."""
        self._refuse()

    def _text(self, *_: Any) -> Any:
        return self._references.refer_unknown(self._why)

    __bool__ = __iter__ = __len__ = __contains__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __int__ = __float__ = __index__ = _refuse
    __str__ = __format__ = __fspath__ = _text
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __call__
    __or__ = __ror__ = __call__

    def __repr__(self) -> str:
        return f"<{START}{self._why}>"


class Member(str):
    """A member of an enumeration, as YAML writes it: in Python its text is another one."""

    references: References

    @property
    def value(self) -> str:
        return str.__str__(self)

    @property
    def name(self) -> str:
        return self.value.upper()

    def __str__(self) -> str:
        self.references.refuse("A text that is made of an enumeration of SQLMesh is not known here.")

    def __format__(self, form: str) -> str:
        return str(self)


class _Kind(type):
    """The metaclass of SQLMesh's classes by name; it creates `EnvironmentSuffixTarget.TABLE` on first use."""

    references: References

    def __repr__(cls) -> str:
        return f"<{START}{cls.__name__}>"  # to be printed: in a configuration it is refused

    def __getattr__(cls, name: str) -> Any:
        if name.isupper():
            member = Member(name if cls.__name__ == "ModelKindName" else name.lower())
            member.references = cls.references
            return member
        if cls.__name__ == "CategorizerConfig" and name in MODES:
            return lambda: cls(**dict.fromkeys(CATEGORIZED, MODES[name]))
        raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")


class Recorded(metaclass=_Kind):
    """An instance of a class of SQLMesh, with the arguments of its call."""

    stands_for = ""  # the class of SQLMesh

    def __init__(self, *args: Any, **keywords: Any) -> None:
        if args:
            raise TypeError(f"`{type(self).__name__}` takes keywords only: `{type(self).__name__}(key=...)`.")
        self.__dict__.update(keywords=keywords, lines={}, line=0)
        if "type_" in keywords:
            keywords["type"] = keywords.pop("type_")
        if (kind := type_of(self.stands_for)) and keywords.setdefault("type", kind) != kind:
            raise ValueError(f"The `type` of `{self.stands_for}` is `{kind}`.")

    def __repr__(self) -> str:
        return f"{type(self)!r}(...)"

    @property
    def is_exact(self) -> bool:
        """True for a class of SQLMesh itself, False for one that a project derives."""
        return type(self).__base__ is Recorded

    @classmethod
    def parse_obj(cls, values: Mapping[str, Any]) -> Any:
        return cls(**values)

    model_validate = parse_obj

    def copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
        new = type(self)(**{**self.__dict__["keywords"], **(update or {})})
        new.__dict__.update(line=self.__dict__["line"], lines=dict(self.__dict__["lines"]))
        return new

    model_copy = copy

    def __getattr__(self, name: str) -> Any:
        keywords = self.__dict__.get("keywords", {})
        if name in keywords:
            return keywords[name]
        if name.startswith("_"):
            raise AttributeError(name)
        return type(self).references.refuse(f"`{name}` of `{self.stands_for}` is set nowhere, and decides here.")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["keywords"][name] = value
        self.__dict__["lines"][name] = sys._getframe(1).f_lineno


def type_of(name: str) -> str:
    """Return the `type` in YAML of a connection or a scheduler, '' for any other class.

    >>> type_of("SparkConnectionConfig"), type_of("GCPPostgresConnectionConfig"), type_of("GatewayConfig")
    ('spark', 'gcp_postgres', '')
    """
    matched = _TYPED.fullmatch(name)
    return TYPES.get(name, matched[1].lower() if matched else "")


class SqlmeshModule(Unknown, ModuleType):
    """A module of SQLMesh, or a function of it; its names are created on first use."""

    def __init__(self, name: str, finder: Sqlmesh) -> None:
        ModuleType.__init__(self, name)
        Unknown.__init__(self, f"`{name}`", finder.references)
        self.__dict__.update(__path__=[], _finder=finder)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name[:1].isupper() and not name.isupper():
            return self._finder.class_named(name)
        return importlib.import_module(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self.__name__.endswith(".sqlmesh_config"):
            self._references.refuse(
                "`sqlmesh_config` makes the configuration of a dbt project. mergeplan opens SQLMesh's own, and none of "
                "dbt."
            )
        return Unknown(f"A call of `{self.__name__}`", self._references)


class Sqlmesh(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `sqlmesh` and all below it, and `dotenv`, which reads no file."""

    def __init__(self, references: References) -> None:
        self.references = references
        self._classes: dict[str, type[Recorded]] = {}

    def class_named(self, name: str) -> type[Recorded]:
        """Return the stand-in for a class: one per name, from whatever module it is imported."""
        if name not in self._classes:
            names = {"stands_for": name, "references": self.references}
            self._classes[name] = cast("type[Recorded]", _Kind(name, (Recorded,), names))
        return self._classes[name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] in ("sqlmesh", "dotenv"):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name.partition(".")[0] == "sqlmesh":
            return SqlmeshModule(spec.name, self)
        module = ModuleType(spec.name)
        nothing = {"load_dotenv": False, "find_dotenv": ""}
        vars(module).update({name: partial(_return_value, value) for name, value in nothing.items()})
        unknown = Unknown("A .env file, which mergeplan does not read,", self.references)
        vars(module).update(dict.fromkeys(("dotenv_values", "get_key", "set_key", "unset_key"), unknown))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in module has no text."""


def _return_value(value: Any, *_: Any, **__: Any) -> Any:
    return value


def modules_of_ours() -> Iterator[str]:
    return (name for name in list(sys.modules) if name.partition(".")[0] in ("sqlmesh", "dotenv"))
