"""Render comments as GitHub shows them: Markdown as HTML, without anything that could run or leave the page."""

import re
from html import unescape

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from mergeplan_sandbox.api.graphs import draw_graph

DIFF_CLASSES = {"+": "add", "-": "del", "@": "hunk"}
ALERTS = re.compile(r"<blockquote>\s*<p>\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\](?:<br>)?\s*")
GRAPH = re.compile(r'<pre class="mermaid"><code>(.*?)</code></pre>', re.DOTALL)
TASK = re.compile(r"\[([ xX])\](?=\s)")
# Private characters mark a task's box through rendering and cleaning; they are taken out of what people write.
BOX_OPEN, BOX_CLOSE = "\ue000", "\ue001"
BOX = re.compile(f"{BOX_OPEN}(\\d+):([ xX]){BOX_CLOSE}")

TAGS = set(
    "a b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li ol p pre q s samp span "
    "strike strong sub summary sup table tbody td tfoot th thead tr tt ul var picture source wbr".split()
)
ATTRIBUTES = {
    "*": {"title", "align", "width", "height"},
    "a": {"href", "name"},
    "img": {"src", "alt"},
    "details": {"open"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
CLASSES = {"span": {"add", "del", "hunk", "line"}, "pre": {"mermaid", "diff"}}


def _render_fence(self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    language = token.info.split()[0].lower() if token.info.strip() else ""
    if language != "diff":
        kind = ' class="mermaid"' if language == "mermaid" else ""
        return f"<pre{kind}><code>{escapeHtml(token.content)}</code></pre>\n"
    lines = (
        f'<span class="{DIFF_CLASSES.get(line[:1], "line")}">{escapeHtml(line)}</span>'
        for line in token.content.splitlines()
    )
    return f'<pre class="diff"><code>{"".join(lines)}</code></pre>\n'


PARSER = MarkdownIt("commonmark", {"html": True, "breaks": True}).enable(["table", "strikethrough"])
PARSER.add_render_rule("fence", _render_fence)


def render_markdown(text: str, *, tick_form: str = "") -> Markup:
    """Render the text as safe HTML; boxes of task lists become buttons of the form `tick_form` if it is given."""
    source = text.replace(BOX_OPEN, "").replace(BOX_CLOSE, "")
    tokens = PARSER.parse(source)
    _mark_tasks(tokens)
    html = PARSER.renderer.render(tokens, PARSER.options, {})
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        link_rel="nofollow noreferrer",
        url_schemes={"http", "https", "mailto"},
    )
    clean = GRAPH.sub(lambda match: draw_graph(unescape(match[1])) or match[0], ALERTS.sub(_render_alert, clean))
    return Markup(BOX.sub(lambda match: _render_box(match, tick_form), clean))  # noqa: S704 - cleaned just above


def _mark_tasks(tokens: list[Token]) -> None:
    for index in range(len(tokens) - 2):
        item, inline = tokens[index], tokens[index + 2]
        if item.type != "list_item_open" or inline.type != "inline" or not inline.children or item.map is None:
            continue
        first = inline.children[0]
        if match := TASK.match(first.content):
            first.content = f"{BOX_OPEN}{item.map[0]}:{match[1]}{BOX_CLOSE}{first.content[match.end() :]}"


def _render_box(match: re.Match[str], form: str) -> str:
    mark = "&#9744;" if match[2] == " " else "&#9745;"
    if not form:
        return f'<span class="box">{mark}</span>'
    return f'<button class="box" form="{escapeHtml(form)}" name="line" value="{match[1]}">{mark}</button>'


def _render_alert(match: re.Match[str]) -> str:
    kind = match[1].lower()
    return f'<blockquote class="alert {kind}"><p><strong>{kind.title()}</strong><br>'


def toggle_box(text: str, line: int) -> str:
    lines = text.split("\n")
    if 0 <= line < len(lines) and (match := re.search(r"\[([ xX])\]", lines[line])):
        mark = "x" if match[1] == " " else " "
        lines[line] = lines[line][: match.start(1)] + mark + lines[line][match.end(1) :]
    return "\n".join(lines)
