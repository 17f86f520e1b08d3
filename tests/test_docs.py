"""The documents say what is there: each verb, rule and setting is described, and every link leads somewhere."""

import ast
import importlib
import re
from pathlib import Path

import click
import pytest
import yaml

from mergeplan.bot.commands.table import COMMANDS
from mergeplan.bot.github.permissions import EVENTS, OPTIONAL, PERMISSIONS
from mergeplan.bot.main import BOT_VERBS
from mergeplan.bot.rules import WITHOUT_EFFECT, BotConfig
from mergeplan.bot.settings import Settings
from mergeplan.planner.cli.main import VERBS
from mergeplan.planner.plan.change import Category
from tests import commands_page, promises_page, versions_page
from tests.doc_links import in_folder
from tests.promises_page import PROMISES

ROOT = Path(__file__).parent.parent
EVERY_VERB = {**VERBS, **BOT_VERBS}
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def command(verb: str) -> click.Command:
    module, _, attribute = EVERY_VERB[verb][0].partition(":")
    cli_command = getattr(importlib.import_module(module), attribute)
    assert isinstance(cli_command, click.Command)
    return cli_command


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them in links."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_each_verb_is_described_with_its_options(verb: str) -> None:
    _, heading, rest = text("docs/reference/commands.md").partition(f"\n## {verb}\n")
    section = text("docs/reference/commands.md").partition("\n## ")[0] + rest.partition("\n## ")[0]
    options = [option for param in command(verb).params if isinstance(param, click.Option) for option in param.opts]

    assert heading, f"docs/reference/commands.md has no heading for {verb}"
    assert f"mergeplan {verb}" in section
    assert [option for option in options if f"`{option}" not in section] == []


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_each_verbs_help_has_an_example(verb: str) -> None:
    described = command(verb).help or ""

    assert f"mergeplan {verb}" in described.partition("\b")[2]


def test_each_rule_is_described() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "planner" / "plan").glob("*.py")))
    rules = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code)) | {"added", "removed", "categorized", "due", "undecidable"}

    assert {rule for rule in rules if f"`{rule}`" not in text("docs/reference/categories.md")} == set()


@pytest.mark.parametrize("field", Settings.model_fields)
def test_each_setting_is_described(field: str) -> None:
    assert f"| `MERGEPLAN_{field.upper()}` |" in text("docs/reference/settings.md")


@pytest.mark.parametrize("key", sorted({*BotConfig.model_fields, *WITHOUT_EFFECT}))
def test_each_key_of_the_bots_rules_is_described(key: str) -> None:
    assert f"`{key}`" in text("docs/reference/bot.md") or f"\n  {key}: " in text("docs/reference/bot.md")


def test_each_promise_of_the_bot_is_listed_with_the_tests_that_name_it() -> None:
    named, listed = promises_page.tests_by_number().keys(), [n for promise in PROMISES.values() for n in promise]

    assert sorted(listed) == list(range(1, 51))
    assert named <= set(listed)
    page = text("docs/explanation/promises.md")
    assert promises_page.page(page) == page, "python -m tests.promises_page"


def test_the_tested_versions_are_those_that_the_tests_install() -> None:
    page = text("docs/reference/versions.md")
    assert versions_page.page(page) == page, "python -m tests.versions_page"
    assert versions_page.lists() == text("planner/tested_versions.ini"), "python -m tests.versions_page"


def test_the_commands_of_the_pull_request_are_described_as_they_are() -> None:
    page = text("docs/reference/bot.md")
    assert commands_page.page(page) == page, "python -m tests.commands_page"
    assert all(f"| `{form.usage}` |" in page for form in COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    for target in (link for link in links if not link.startswith("https://")):
        name, _, anchor = target.partition("#")
        aim = (page.parent / name).resolve() if name else page

        assert aim.exists(), target
        assert not anchor or anchor in anchors(aim), target


def messages() -> str:
    """Every text in the code, a value in it as `…`, without backticks."""
    texts = []
    for path in (path for folder in ("planner", "bot", "sandbox") for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            constants = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
            texts.append("".join(text for text in constants if isinstance(text, str)))
    return "\n".join(text for text in texts if text != "…").replace("`", "")


def test_troubleshooting_quotes_messages_that_exist() -> None:
    page, known = text("docs/guides/troubleshooting.md"), messages()
    quotes = re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE)

    assert len(quotes) > 25
    assert [quote for quote in quotes if quote not in known] == []


def test_the_glossary_has_each_term_once_and_every_category() -> None:
    terms = re.findall(r"^\| ([\w -]+) \| ", text("docs/reference/glossary.md"), flags=re.MULTILINE)[1:]
    categories = {category.value.replace("_", "-") for category in Category}

    assert terms == sorted(set(terms))
    assert {category for category in categories if not category.startswith("indirect")} <= {*terms}


@pytest.mark.parametrize("page", ["comparison", "lives"])
def test_a_page_names_tests_that_exist(page: str) -> None:
    file = ""
    for named, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", text(f"docs/explanation/{page}.md")):
        file = named or file

        assert not test or f"def {test}(" in text(file), f"{file}::{test}"


def test_the_readmes_two_commands_are_targets() -> None:
    assert "```bash\nmake demo\nmake test\n```" in text("README.md")
    assert all(re.search(rf"^{target}:", text("Makefile"), flags=re.MULTILINE) for target in ("demo", "test"))


def test_the_readmes_workflow_is_the_one_to_copy() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", text("README.md"), flags=re.MULTILINE | re.DOTALL)
    workflow = [line.strip() for line in text("docs/workflows/plan.yml").splitlines()]

    assert blocks
    assert [line for block in blocks for line in block.splitlines() if line.strip() not in workflow] == []


def test_the_architecture_page_names_every_stage() -> None:
    page = text("docs/development/architecture.md")
    stages = {
        path.parent.relative_to(ROOT).as_posix()
        for package in ("planner", "bot", "sandbox")
        for path in (ROOT / package).glob("*/*.py")
        if path.name != "__init__.py"
    }

    assert [stage for stage in sorted(stages) if f"| `{stage}/` |" not in page] == []
    assert page.count("\n") <= 250


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "development").glob("*.md")), ids=lambda page: page.name)
def test_what_a_development_page_names_is_there(page: Path) -> None:
    prose = page.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:planner|bot|mergeplan|sandbox|tests|docs)/[\w./-]*)`", prose)
    constants = re.findall(r"`((?:planner|bot|sandbox)/[\w./-]*\.py)` \((?:its name\), )?`(\w+)`", prose)

    assert [path for path in paths if not (ROOT / path).exists()] == []
    shortened = [path for path in re.findall(r"`(\w[\w.-]*/[\w./-]*\w)`", prose) if not (ROOT / path).exists()]
    assert shortened == [], "named by a part of its path"
    assert [(path, name) for path, name in constants if not re.search(rf"\b{name}\b", text(path))] == []


def test_the_schedules_workflow_computes_the_bots_own_prod_and_may_do_no_more() -> None:
    """Under another project's name it would find no prod; and what reads needs no right to write."""
    workflow = yaml.safe_load(text("docs/workflows/run.yml"))
    (job,) = workflow["jobs"].values()
    step = job["steps"][-1]

    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in job
    assert step["run"].startswith("mergeplan run ")
    assert step["env"]["MERGEPLAN_PROJECT"] == "${{ github.repository }}"
    assert "cron" in workflow[True]["schedule"][0]  # YAML reads `on` as true


def test_the_apps_permissions_and_events_are_described_as_its_manifest_asks_for_them() -> None:
    section = text("docs/guides/service.md").partition("\n## The GitHub App\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    levels = {"read": "read", "write": "read and write"}

    described = [row for row in rows if len(row) == 3 and row[1] != "Level"]
    assert described == [
        [permission.title, levels[permission.level], in_folder(permission.why, "guides")]
        for permission in (*PERMISSIONS, *OPTIONAL)
    ]
    assert [row[0] for row in rows if len(row) == 1][1:] == [event.replace("_", " ").capitalize() for event in EVENTS]
