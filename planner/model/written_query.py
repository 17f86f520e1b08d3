"""The query of a model as a person wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class WrittenQuery:
    """The text that runs: in the person's own words, on their lines of the file."""

    text: str = ""  # '' if the text is no SQL that Spark can run: then the model's `sql` runs
    text_line: int = 0  # where the text begins in the file
    dbt_text: str = field(default="", repr=False, compare=False)  # of dbt's file, which `source` translates
    misread: str = ""  # parts of the text that the parser's tree lacks, so that no edit of them is overlooked
