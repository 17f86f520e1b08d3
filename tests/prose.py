"""Find prose that is hard to read: `python -m tests.prose docs/guides/python.md` prints the findings of pages.

A finding is a sentence of over 30 words, a sentence that opens with a relative clause, one with two semicolons, one
with three passives, or a private word of this project. `tests/test_prose.py` holds how many a page may have.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from tests.language import PRIVATE

ROOT = Path(__file__).parent.parent
WORDS_MAX = 30
GENERATED = frozenset({"docs/reference/json.md", "docs/reference/api.md", "docs/reference/versions.md"})
OPENING = re.compile(r"(What|Whatever|Which|Whichever|Who|Whoever|Whose|Where|Whether|As much as|That which)\b")
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)\s+(?:(?:not|also|only|never|always|then|still|\w+ly)\s+)?"
    r"(?:\w+ed|made|built|read|kept|left|put|run|shown|written|taken|given|found|held|known|sent|set|told|chosen|cut"
    r"|meant|done|seen|said|brought|lost|spent|split|drawn|begun|thrown|hidden)\b"
)
ITEM_END = re.compile(r";\s+")  # a cell of a table separates its items by semicolons
SENTENCE_END = re.compile(r"(?<=[.!?])[\"”)]*\s+(?!\W*$)|(?<=:)\s+(?=[\"“(`*]*[A-Z0-9`])")
WORD = re.compile(r"[^\W_][\w'./-]*")


@dataclass(frozen=True)
class Finding:
    """One sentence that breaks one rule."""

    line: int
    rule: str
    sentence: str


def page_findings(page: str) -> list[Finding]:
    """Return the findings of a page, of CHANGELOG.md those of the unreleased section."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "CHANGELOG.md":
        text = re.split(r"^(?=## \[)", text, flags=re.MULTILINE)[1]
    return text_findings(text)


def text_findings(text: str) -> list[Finding]:
    return [
        Finding(line, rule, sentence)
        for line, block in _blocks(text)
        for sentence in SENTENCE_END.split(block)
        for rule in broken_rules(sentence.strip())
    ]


def broken_rules(sentence: str) -> list[str]:
    """Return the rules that a sentence breaks.

    >>> broken_rules("Which of them wins is said by the plan.")
    ['opens with a relative clause']
    >>> broken_rules("The plan says which of them wins.")
    []
    """
    rules = {
        f"over {WORDS_MAX} words": len(WORD.findall(sentence)) > WORDS_MAX,
        "opens with a relative clause": bool(OPENING.match(sentence.lstrip('*_"“('))) and not sentence.endswith("?"),
        "chain of semicolons": sentence.count(";") > 1,
        "chain of passives": len(PASSIVE.findall(sentence)) > 2,
        "private word": bool(PRIVATE.search(sentence)),
    }
    return [rule for rule, is_broken in rules.items() if is_broken]


def checked_pages() -> list[str]:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [name for page in pages if (name := page.relative_to(ROOT).as_posix()) not in GENERATED]


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each paragraph, item and cell; code in it is one word, headings are left out."""
    line, in_heading, in_cell = 0, False, False
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        in_heading = token.type in ("heading_open", "th_open") or (in_heading and token.nesting != -1)
        in_cell = token.type == "td_open" or (in_cell and token.nesting != -1)
        line = token.map[0] + 1 if token.map else line
        if token.type == "inline" and not in_heading:
            text = "".join(_words(child.type, child.content) for child in token.children or ())
            for item in ITEM_END.split(text) if in_cell else [text]:
                yield line, item


def _words(kind: str, content: str) -> str:
    return {"text": content, "code_inline": "`code`", "softbreak": " ", "hardbreak": " "}.get(kind, "")


def main() -> None:
    """Print the findings of the pages that are named, or the number of each page."""
    for page in sys.argv[1:] or checked_pages():
        findings = page_findings(page)
        sys.stdout.write(f"{len(findings):4} {page}\n")
        for finding in findings if sys.argv[1:] else ():
            sys.stdout.write(f"{page}:{finding.line}: {finding.rule}: {finding.sentence}\n")


if __name__ == "__main__":
    main()
