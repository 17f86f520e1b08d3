"""The SQL that runs beside a model's query."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Statement:
    """SQL beside a model's query: `head` is all of it or the part before its query, `makes` its temporary view."""

    head: str
    query: str = ""
    makes: str = ""
    harmless: bool = False  # it cannot change rows
    stages: tuple[str, ...] = ("creating", "evaluating")  # when it runs: before the table is there, with each batch
    text: str = field(default="", repr=False)  # the query as it runs: see WrittenQuery
    misread: str = field(default="", repr=False)


@dataclass(frozen=True)
class Statements:
    pre_statements: tuple[Statement, ...] = ()
    post_statements: tuple[Statement, ...] = ()
    on_virtual_update: tuple[Statement, ...] = ()  # when an environment's view is made or moved

    @property
    def around(self) -> tuple[Statement, ...]:
        """The statements before and after the query."""
        return (*self.pre_statements, *self.post_statements)

    @property
    def shaping(self) -> tuple[Statement, ...]:
        """The statements before the query that may change what it returns."""
        return tuple(statement for statement in self.pre_statements if not statement.harmless)
