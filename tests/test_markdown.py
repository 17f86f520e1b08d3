"""Text of a project in a scheduler's Markdown, as a reader of Markdown understands it."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from mergeplan.airflow.graph import write_model_doc
from mergeplan.markdown import code_block, code_span
from mergeplan.planner.contract.schedule import ScheduledAudit
from tests.airflow.graphs import graph, model

HOSTILE = (
    "a`b", "```\n![x](http://evil)\n```", "` [x](javascript:alert(1)) `", "<img src=x onerror=alert(1)>", "``", "~~~",
)  # fmt: skip


def types_of(text: str) -> set[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    return {token.type for block in tokens for token in (block, *(block.children or ()))}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_in_code_stays_code(text: str) -> None:
    assert types_of(code_block(text, "sql")) == {"fence"}
    assert types_of(code_span(text)) == {"paragraph_open", "inline", "code_inline", "paragraph_close"}


@pytest.mark.parametrize("text", HOSTILE)
def test_the_facts_of_a_task_hold_no_link_image_or_tag(text: str) -> None:
    (made,) = graph(
        model("s.t", path=text, tags=(text,), audits=(ScheduledAudit(name=text),), table=text, kind=text)
    ).models.values()

    assert not types_of(write_model_doc(made, titled=True)) & {
        "link_open",
        "image",
        "html_inline",
        "html_block",
        "fence",
    }
