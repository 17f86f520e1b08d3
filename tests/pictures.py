"""The pictures of the documentation, made from a running demo: `make pictures`.

A pull request of the demo is planned and built. Its records are kept beside the pictures, and a browser draws them.
`tests/test_pictures.py` draws the same records again, without a browser, and compares.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.pages.render import render_page
from mergeplan.bot.pages.view import PageView
from mergeplan.bot.records import ProdRecord, PullRecord
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.shown import Shown
from mergeplan.planner.project.scaffold import Wishes, write_project
from mergeplan.planner.site.progress import RunProgress
from mergeplan_sandbox.demo import MODEL, REPOSITORY, open_demo_pull, run_planner, start_demo
from mergeplan_sandbox.markdown import render_markdown

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
SOURCE, MADE = FOLDER / "source.json", FOLDER / "made.json"
STYLE = ROOT / "sandbox" / "mergeplan_sandbox" / "pages" / "style.css"
WORDED = ("texts/plan_text", "texts/explanation", "terminal", "texts/rendering")  # below planner/cli
TERMINAL = "terminal-plan.svg"
BAR = re.compile(r"\d%.*\d/\d")  # of a progress bar, which a terminal draws over itself
WIDTH = 968
UNHURRIED = "\ncicd_bot:\n  data_diff_budget: {seconds: 600}\n"  # rows are compared on a slow machine, too
CHANGE = ("  item_id,\n", "  item_id,\n  'z' AS new_column,\n")
COMMENT = """<!doctype html><meta charset="utf-8"><style>{style} body {{ padding: 8px; }}</style><div class="said">
<span class="avatar" style="background: hsl(165 45% 45%)">M</span><article>
<div class="top"><b>mergeplan[bot]</b> <span class="bot">bot</span></div><div class="markdown">{body}</div>
</article></div>"""


@dataclass(frozen=True)
class Source:
    """What the pictures are drawn from."""

    record: PullRecord
    prod: ProdRecord
    progress: RunProgress | None


def read_source() -> Source:
    """The records that the pictures were drawn from."""
    return TypeAdapter(Source).validate_json(SOURCE.read_bytes())


def draw(source: Source) -> dict[str, str]:
    """The HTML of each picture, by the picture's name."""
    shown = Shown(source.record, source.prod)
    view = PageView(shown, source.progress)
    comment = COMMENT.format(style=STYLE.read_text(encoding="utf-8"), body=render_markdown(plan_comment(shown) or ""))
    return {"plan-comment.png": comment, "plan-page.png": render_page(view, "plan", "")}


def digests(source: Source) -> dict[str, str]:
    """A digest of what each picture shows: the HTML, or for the terminal the texts that it is made of."""
    texts = [ROOT / "planner" / "cli" / f"{name}.py" for name in WORDED]
    words = json.dumps([_sentences(path) for path in texts])
    shown = {**draw(source), TERMINAL: words}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in shown.items()}


def _sentences(path: Path) -> list[str]:
    """Return the texts in a file, without its docstrings and the empty texts that some Pythons see in f-strings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in statements)
    return [node.value for node in constants if isinstance(node.value, str) and node.value]


def main() -> None:
    """Run the demo as far as its first plan, and draw."""
    fonts = subprocess.run(["fc-list", ":lang=und-zsye"], capture_output=True, text=True, check=True).stdout
    if not fonts:
        raise SystemExit("The pictures need a font with emoji, such as Debian's fonts-noto-color-emoji.")
    with tempfile.TemporaryDirectory(prefix="mergeplan-pictures-") as name:
        folder = Path(name)
        source, terminal = play(folder)
    SOURCE.write_bytes(TypeAdapter(Source).dump_json(source, exclude_defaults=True, indent=1) + b"\n")
    source = read_source()
    for picture, html in draw(source).items():
        take_screenshot(html, FOLDER / picture)
    (FOLDER / TERMINAL).write_text(terminal, encoding="utf-8")
    MADE.write_text(json.dumps(digests(source), indent=1) + "\n", encoding="utf-8")


def play(folder: Path) -> tuple[Source, str]:
    """The records of a pull request that was planned and built, and its plan on a terminal."""
    write_project(folder / "shop", Wishes())
    config = folder / "shop" / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8") + UNHURRIED, encoding="utf-8")
    with start_demo(Console(highlight=False), folder) as demo:
        demo.wait("prod is built from main", demo.has_prod)
        number = open_demo_pull(demo, "new-column", "Add new_column", CHANGE, "ann")
        demo.wait(f"pull request #{number} is planned and built", lambda: demo.is_built(number))
        inbox = Inbox(f"sqlite:///{folder / 'home' / 'bot.db'}")
        record = inbox.pulls.get(REPOSITORY, number)
        assert record is not None
        source = Source(record, inbox.prods.get(REPOSITORY), inbox.progress.get(REPOSITORY, number))
        inbox.close()
        return source, draw_terminal(folder)


def draw_terminal(folder: Path) -> str:
    """`mergeplan plan dev` of the same change, as SVG without its remote font."""
    model = folder / "shop" / MODEL
    model.write_text(model.read_text(encoding="utf-8").replace(*CHANGE), encoding="utf-8")
    os.environ |= {"FORCE_COLOR": "1", "COLUMNS": "100"}
    done = run_planner(folder, folder / "home" / REPOSITORY, "plan", "dev", "--auto-apply")
    assert not done.returncode, done.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=100, file=nowhere)
        lines = [line for line in done.stdout.strip().splitlines() if not BAR.search(line)]
        console.print(Text.from_ansi("\n".join(["$ mergeplan plan dev", *lines])))
    svg = console.export_svg(title="mergeplan plan dev", unique_id="plan")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def take_screenshot(html: str, picture: Path) -> None:
    """The page as a picture, as high as it is: the browser says how high, then draws."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "page.html"
        probe = "<script>document.title = document.documentElement.scrollHeight</script>"
        file.write_text(html + probe, encoding="utf-8")
        dump = _run_browser(file, "--dump-dom", f"--window-size={WIDTH},100")
        height = re.search(r"<title>(\d+)</title>", dump)
        file.write_text(html, encoding="utf-8")
        assert height, "the browser shows no page"
        _run_browser(file, f"--screenshot={picture}", f"--window-size={WIDTH},{height[1]}")


def _run_browser(file: Path, *arguments: str) -> str:
    browser = os.environ.get("CHROMIUM", "chromium")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")
    command = [browser, *options, *arguments, file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


if __name__ == "__main__":
    sys.exit(main())
