"""Comments are shown as GitHub shows them, and nothing in them runs."""

import pytest

from mergeplan_sandbox.markdown import render_markdown, toggle_box


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("| a |\n|---|\n| 1 |", "<td>1</td>"),
        ("~~old~~", "<s>old</s>"),
        ("<details><summary>More</summary>\n\nText\n\n</details>", "<details><summary>More</summary>"),
        (
            "```diff\n-a\n+b\n```",
            '<pre class="diff"><code><span class="del">-a</span><span class="add">+b</span></code></pre>',
        ),
        ("```mermaid\ngraph LR\n```", '<pre class="mermaid"><code>graph LR\n</code></pre>'),
        ("```sql\nSELECT '<b>'\n```", "<pre><code>SELECT '&lt;b&gt;'"),
        ("one\ntwo", "one<br>"),
        ("> [!WARNING]\n> Look out", '<blockquote class="alert warning"><p><strong>Warning</strong><br>Look out'),
        ("- [x] done", '<span class="box">&#9745;</span> done'),
    ],
)
def test_markdown_becomes_what_github_shows(text: str, html: str) -> None:
    assert html in render_markdown(text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "<a href='javascript:alert(1)'>x</a>",
        "<iframe src='http://127.0.0.1/'></iframe>",
        "<style>body { display: none }</style>",
        "<form action='/merge'><button>x</button></form>",
        "<p style='position: fixed'>x</p>",
        "\ue000<script>:x\ue001",
    ],
)
def test_nothing_in_a_comment_runs_or_leaves_its_place(text: str) -> None:
    html = str(render_markdown(text, tick_form="tick-1")).lower()

    for word in (
        "<script",
        "onerror",
        'href="javascript',
        "href='javascript",
        "<iframe",
        "<style",
        "<form",
        "style=",
        "<button",
    ):
        assert word not in html


def test_hidden_markers_stay_hidden() -> None:
    assert "mergeplan" not in render_markdown("<!-- mergeplan:plan -->\nPlan")


def test_a_box_is_ticked_and_unticked_in_the_text() -> None:
    text = "```\n- [ ] code\n```\n\n- [ ] one\n- [x] two\n"
    html = render_markdown(text, tick_form="tick-1")
    assert 'form="tick-1" name="line" value="4"' in html and html.count("<button") == 2

    assert toggle_box(text, 4) == text.replace("- [ ] one", "- [x] one")
    assert toggle_box(toggle_box(text, 5), 5) == text
    assert toggle_box(text, 99) == text
