"""Types of dbt's manifest.json, catalog.json and run_results.json, limited to the parts that mergeplan reads."""

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from mergeplan.planner.parsing.files.typed_json import FilePath, JsonPart, Text, null_default

Id = Annotated[str, Field(pattern=r"^[^.]+\.[^.]+\..+$", max_length=2000)]  # `model.shop.total`
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Words = Annotated[tuple[str, ...], null_default(())]


class Metadata(JsonPart):
    """The origin of a file: both files of one call have one `invocation_id`."""

    project_name: Text = ""
    adapter_type: Text = ""
    dbt_version: Text = ""
    invocation_id: Text = ""


def first_word(value: Any) -> Any:
    """Return the first of several addresses: dbt allows a list since version 1.10."""
    return value[0] if isinstance(value, list) and value else value or ""


Made = Annotated[Metadata, null_default(Metadata())]


class Needs(JsonPart):
    """The nodes and macros that a node depends on."""

    nodes: Words = ()
    macros: Words = ()


Above = Annotated[Needs, null_default(Needs())]


class Checksum(JsonPart):
    """The hash of the file of a node."""

    name: Text = ""
    checksum: Text = ""


class Constraint(JsonPart):
    type: Text = ""
    expression: Text = ""


Constraints = Annotated[tuple[Constraint, ...], null_default(())]


class ColumnPart(JsonPart):
    """A column as YAML describes it."""

    name: Name
    data_type: Text = ""
    description: Text = ""
    constraints: Constraints = ()


Columns = Annotated[dict[str, ColumnPart], null_default({})]


class HookPart(TypedDict, total=False):
    sql: Text


# The settings whose form matters. All others are read as a word, a list of words or a flag.
Settings = TypedDict(
    "Settings",
    {
        "enabled": bool | None,
        "group": str | None,
        "column_types": dict[str, str] | None,
        "lookback": int | None,
        "contract": dict[str, Any] | None,
        "snapshot_meta_column_names": dict[str, str | None] | None,
        "pre-hook": list[HookPart] | None,
        "post-hook": list[HookPart] | None,
    },
    total=False,
)
Settings.__pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[attr-defined]


class NodePart(JsonPart):
    """A node: a model, a seed, a snapshot, a test, a hook of the project."""

    unique_id: Id
    resource_type: Name
    name: Name
    original_file_path: FilePath
    package_name: Name
    relation_name: Text = ""
    db_schema: Text = Field(default="", alias="schema")
    alias: Text = ""
    language: Text = ""
    config: Annotated[Settings, null_default({})] = Field(default_factory=Settings)
    columns: Columns = Field(default={})
    constraints: Constraints = ()
    description: Text = ""
    tags: Words = ()
    group: Text = ""
    depends_on: Above = Needs()
    attached_node: Text = ""
    checksum: Annotated[Checksum, null_default(Checksum())] = Checksum()
    test_metadata: Any = None
    version: str | int | float | None = None
    raw_code: Text = ""
    compiled_code: Text = ""

    @property
    def owner(self) -> str:
        """The word before its name in `ref(...)`."""
        return self.package_name

    @property
    def relation(self) -> str:
        """The name of its table, even if dbt stores it in none."""
        return self.relation_name or f"{self.db_schema}.{self.alias or self.name}"


class FreshnessAge(JsonPart):
    """An age, such as 12 hours; null where there is no limit."""

    count: int | None = None
    period: Text = ""

    @property
    def text(self) -> str:
        return f"{self.count} {self.period}" if self.count and self.period else ""


Age = Annotated[FreshnessAge, null_default(FreshnessAge())]


class FreshnessPart(JsonPart):
    """The ages from which a source is late, and the rows that count."""

    warn_after: Age = FreshnessAge()
    error_after: Age = FreshnessAge()
    filter: Text = ""


class SourcePart(JsonPart):
    """A table that dbt reads and does not build."""

    unique_id: Id
    name: Text = ""
    source_name: Text = ""
    relation: Name = Field(alias="relation_name")
    original_file_path: FilePath
    description: Text = ""
    tags: Words = ()
    columns: Columns = Field(default={})
    version: None = None
    freshness: Annotated[FreshnessPart, null_default(FreshnessPart())] = FreshnessPart()
    loaded_at_field: Text = ""
    loaded_at_query: Text = ""

    @property
    def owner(self) -> str:
        """The word before its name in `source(...)`."""
        return self.source_name


class Owner(JsonPart):
    """The owner of a group or an exposure."""

    name: Text = ""
    email: Annotated[str, BeforeValidator(first_word)] = ""

    @property
    def words(self) -> str:
        return self.name or self.email


OwnerOrNone = Annotated[Owner, null_default(Owner())]


class GroupPart(JsonPart):
    name: Name
    owner: OwnerOrNone = Owner()


class ExposurePart(JsonPart):
    """A user of tables outside of the project."""

    name: Name
    label: Text = ""
    type: Text = ""
    url: Text = ""
    owner: OwnerOrNone = Owner()
    depends_on: Above = Needs()


Rows = list[dict[str, Any]]


class FixturePart(JsonPart):
    """Rows of a unit test, or the SELECT that returns them; `input` is the input that they replace."""

    input: Text = ""
    rows: str | Rows | None = None


class Overrides(JsonPart):
    """The overrides of a unit test."""

    macros: Annotated[dict[str, Any], null_default({})] = Field(default={})
    vars: Any = Field(default={})
    env_vars: Annotated[dict[str, Any], null_default({})] = Field(default={})


class UnitTestConfig(JsonPart):
    meta: Annotated[dict[str, Any], null_default({})] = Field(default={})


class UnitTestPart(JsonPart):
    unique_id: Id
    name: Name
    original_file_path: FilePath
    description: Text = ""
    depends_on: Above = Needs()
    inputs: Annotated[tuple[FixturePart, ...], null_default(())] = Field(default=(), alias="given")
    expect: Annotated[FixturePart, null_default(FixturePart())] = FixturePart()
    overrides: Annotated[Overrides, null_default(Overrides())] = Overrides()
    config: Annotated[UnitTestConfig, null_default(UnitTestConfig())] = UnitTestConfig()


class FilePart(JsonPart):
    """A part in a file of a project or of a package."""

    package_name: Text = ""
    original_file_path: Text = ""


class MacroPart(FilePart):
    macro_sql: Text = ""
    depends_on: Above = Needs()


class ManifestFile(JsonPart):
    metadata: Made = Metadata()
    nodes: dict[str, NodePart]
    sources: Annotated[dict[str, SourcePart], null_default({})] = Field(default={})
    macros: Annotated[dict[str, MacroPart], null_default({})] = Field(default={})
    groups: Annotated[dict[str, GroupPart], null_default({})] = Field(default={})
    exposures: Annotated[dict[str, ExposurePart], null_default({})] = Field(default={})
    unit_tests: Annotated[dict[str, UnitTestPart], null_default({})] = Field(default={})
    disabled: Annotated[dict[str, tuple[FilePart, ...]], null_default({})] = Field(default={})


class CatalogColumn(JsonPart):
    name: Name
    type: Name
    index: Annotated[int, null_default(0)] = 0


class CatalogTable(JsonPart):
    columns: Annotated[dict[str, CatalogColumn], null_default({})] = Field(default={})


class CatalogFile(JsonPart):
    nodes: Annotated[dict[str, CatalogTable], null_default({})] = Field(default={})
    sources: Annotated[dict[str, CatalogTable], null_default({})] = Field(default={})

    def types(self) -> dict[str, dict[str, str]]:
        return {
            id: {column.name.lower(): column.type for column in sorted(table.columns.values(), key=lambda c: c.index)}
            for id, table in {**self.nodes, **self.sources}.items()
        }


class Arguments(JsonPart):
    """Options of a call of dbt."""

    full_refresh: Annotated[bool, null_default(False)] = False
    vars: Any = Field(default={})
    profile: Text = ""
    target: Text = ""


class RunResults(JsonPart):
    metadata: Made = Metadata()
    args: Annotated[Arguments, null_default(Arguments())] = Arguments()
