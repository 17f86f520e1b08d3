"""The outputs in docs/tutorials/quickstart.md, made by running its commands.

`python -m tests.planner.cli.quickstart_page` writes them anew; `test_quickstart.py` compares them.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mergeplan.planner.engine.spark.engine import open_engine
from tests.conftest import SMALL
from tests.planner.cli.conftest import CommandLine, Ran

PAGE = Path(__file__).parents[3] / "docs" / "tutorials" / "quickstart.md"
BLOCK = re.compile(r"(?<=^```\n)\$ .*?(?=^```$)", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"(\[y/N\]|\[y/n\]): ", re.IGNORECASE)
PROGRESS = re.compile(r"^Running \d+ unit test.*\n", re.MULTILINE)  # a terminal shows it while the test runs
COLUMN = "  'z' AS new_column, -- Added column"
# The edits that the page asks for, each before the first command that starts with these words.
EDITS = {
    "mergeplan plan dev": ("models/incremental_model.sql", "  item_id,\n", f"  item_id,\n{COLUMN}\n"),
    "mergeplan plan dev --auto-apply": ("audits/assert_positive_order_ids.sql", "item_id < 0", "item_id < 99"),
}


@dataclass
class Reader:
    """Somebody who follows the page, command by command."""

    mergeplan: CommandLine
    count_jobs: Callable[[], int]  # of Spark, until now
    ran: list[tuple[str, Ran]] = field(default_factory=list)
    text: str = ""  # the page with the outputs that its commands print now

    def follow(self, text: str) -> None:
        self.text = BLOCK.sub(lambda block: "".join(map(self._show, block[0].split("$ ")[1:])), text)

    def _show(self, shown: str) -> str:
        command, _, output = shown.partition("\n")
        if command in EDITS:
            self.mergeplan.edit(*EDITS[command])
        return f"$ {command}\n{_cut_start(self._type(command), output)}"

    def _type(self, command: str) -> str:
        program, *arguments = shlex.split(command)
        if program == "cd":
            self.mergeplan.root /= arguments[0]
            return ""
        if program == "echo":
            return f"{self.ran[-1][1].code}\n"
        jobs = self.count_jobs()
        ran = self.mergeplan(*arguments, answer="y\n")
        self.ran.append((command, replace(ran, jobs=self.count_jobs() - jobs)))
        return PROMPT.sub(r"\1: y\n", ran.out.lstrip("\n")) + PROGRESS.sub("", ran.err)


def _cut_start(output: str, shown: str) -> str:
    """Return the output, from the same line on if the page leaves its start out."""
    mark, _, rest = shown.partition("\n")
    start = output.find(rest.partition("\n")[0]) if mark == "..." else -1
    return f"...\n{output[start:]}" if start > 0 else output


def hide_times(text: str) -> str:
    """Return the text without what differs between two runs: moments, durations, estimates, versions."""
    text = re.sub(r"20(?!20)\d\d-\d\d-\d\d(?: \d\d:\d\d:\d\d)?", "DAY", text)
    text = re.sub(r"  ~.*|Estimated: .*\n", "", text)
    text = re.sub(r"\s+\d+\.\d\ds|\d:\d\d:\d\d|\d+\.\d seconds|(?<=, )\d+ s\b|(?<=Done in )\d+ s\b", " TIME", text)
    return re.sub(r"\b[0-9a-f]{12}\b|(?<=__)[0-9a-f]{12}", "VERSION", text)


def main() -> None:
    """Write the page with the outputs of a Spark of its own."""
    with tempfile.TemporaryDirectory() as name:
        engine = open_engine(SMALL, Path(name) / ".mergeplan", "metadata")
        reader = Reader(CommandLine(Path(name), engine), engine.jobs)
        reader.follow(PAGE.read_text(encoding="utf-8"))
        engine.close()
    PAGE.write_text(reader.text, encoding="utf-8")


if __name__ == "__main__":
    main()
