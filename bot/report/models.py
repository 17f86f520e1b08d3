"""The models of a plan as a person reads them: a few one by one, many in groups of like ones, and their diffs. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote

from mergeplan.bot.report.markdown import (
    NAMES,
    SIGNS,
    category_of,
    code,
    details_block,
    fence,
    fit_lines,
    format_days,
    format_table,
    inert_text,
    tag_text,
)
from mergeplan.bot.report.words import WHOLE_KINDS, cost_of, day_count
from mergeplan.planner.contract.plan import ModelChange
from mergeplan.planner.site.diff_lines import diff_body
from mergeplan.planner.wording import count_noun, first_names

COMPUTED, TO_COMPUTE = "Computed", "To compute"
OPEN = 12  # models that stand one by one
GROUPS = 10  # rows of like models
NAMED = 2  # names of a group that are read without unfolding it
GROUP_ROOM = 2_500  # characters of a group's names
COLUMNS_MOST = 8  # that are named of a model
ROWS_ROOM = 16_000
DIFFS_OPEN = 6  # diffs with a fold of their own each
DIFFS_ROOM = 20_000
DIFF_MOST = 12_000


@dataclass(frozen=True)
class Site:
    """Where files are shown: the repository's page, a commit, and the project's folder in it."""

    page: str = ""
    commit: str = ""
    folder: str = "."

    def link(self, model: ModelChange) -> str:
        """Return the page of a model's file at its line; '' where it is unknown, or the file is gone."""
        if not self.page or not self.commit or not model.path or model.change == "removed":
            return ""
        within = "" if self.folder in ("", ".") else f"{self.folder.strip('/')}/"
        line = f"#L{model.line}" if model.line else ""
        return f"{self.page}/blob/{self.commit}/{quote(within + model.path)}{line}"


MEANINGS = {
    "breaking": "rows or values that other models read change: the model and those models are computed again",
    "undecided": "the effect is not known, so the model and all models downstream are computed again",
    "non_breaking": "no other model reads what changes: only the model itself is computed again",
    "forward_only": "existing rows stay; new rows come from the new query",
    "indirect_breaking": "not edited, but reads something that changes: it is computed again",
    "indirect_non_breaking": "not edited, and reads nothing that changes: it keeps its table",
    "metadata": "only its description, owner, tags or audits change: it keeps its table",
    "equivalent": "the new text means the same query: it keeps its table",
    "added": "a new model",
    "removed": "a model without a file: prod loses its view",
}
NOWHERE = Site()
SEVERE = ("breaking", "undecided", "removed", "forward_only", "indirect_breaking", "non_breaking", "added")


def models_blocks(models: Sequence[ModelChange], site: Site = NOWHERE, work: str = COMPUTED) -> list[str]:
    """Return each model in a row; many models in rows of like ones, and each one in a fold. The most severe is first.

    `work` is the title of the column with what is computed.
    """
    if len(models) <= OPEN:
        return [model_table(sorted(models, key=severity), ROWS_ROOM, site, work)]
    rows = model_table(models, ROWS_ROOM, work=work)
    return [group_table(models, work), details_block(f"Each of the {len(models):,} models", rows)]


def severity(model: ModelChange) -> int:
    category = category_of(model)
    return SEVERE.index(category) if category in SEVERE else len(SEVERE)


def category_legend(models: Sequence[ModelChange]) -> str:
    """Return the meanings of the plan's categories, folded; '' for a plan without any."""
    present = {category_of(model) for model in models}
    rows = [
        (f"{SIGNS[category]} {NAMES[category]}", text) for category, text in MEANINGS.items() if category in present
    ]
    return details_block("What the categories mean", format_table(("Category", "Meaning"), rows)) if rows else ""


def group_table(models: Sequence[ModelChange], work: str = COMPUTED) -> str:
    def sort(model: ModelChange) -> tuple[int, str, str]:
        return severity(model), category_of(model), model.rule

    groups = [list(members) for _, members in groupby(sorted(models, key=sort), key=sort)]
    lines = format_table(("Models", "Why", work), map(_group_row, groups)).split("\n")
    hidden_count = sum(map(len, groups[GROUPS:]))
    hidden_rows = [f"| … and {count_noun(hidden_count, 'model')} of other sorts | | |"] if hidden_count else []
    return "\n".join([*lines[: GROUPS + 2], *hidden_rows])


def _group_row(members: Sequence[ModelChange]) -> tuple[str, str, str]:
    first, category = members[0], category_of(members[0])
    rule = f"<sub>{code(first.rule)}</sub>" if first.rule else ""
    reasons = Counter(reason_words(model) for model in members if model.reason).most_common()
    more_text = f" And {len(reasons) - 1:,} more like that." if len(reasons) > 1 else ""
    return (
        f"{SIGNS.get(category, '🟣')} {NAMES.get(category, inert_text(category))}<br>{_member_names(members)}",
        " ".join(filter(None, (f"{reasons[0][0]}{more_text}" if reasons else "", rule))),
        _group_work(members),
    )


def _member_names(members: Sequence[ModelChange]) -> str:
    if len(members) <= NAMED:
        return ", ".join(code(model.name) for model in members)
    names = fit_lines([tag_text(model.name) for model in members], GROUP_ROOM, "… and {} more")
    return f"<details><summary><b>{len(members):,} models</b></summary>{'<br>'.join(names)}</details>"


def _group_work(members: Sequence[ModelChange]) -> str:
    todo = [model for model in members if model.intervals and not model.skipped]
    if not todo:
        return "nothing"
    total, cost = sum(map(day_count, todo)), cost_of(todo)
    parts = [count_noun(len(todo), "table"), count_noun(total, "day") if total else "", cost]
    return ", ".join(filter(None, parts))


def diffs_blocks(models: Sequence[ModelChange], site: Site = NOWHERE) -> list[str]:
    edited = [model for model in models if model.diff]
    if len(edited) <= DIFFS_OPEN:
        return [_diff_block(model, site, DIFF_MOST) for model in edited]
    blocks: list[str] = []
    room = DIFFS_ROOM
    for model in edited:
        block = _diff_block(model, site, DIFF_MOST // 4)
        room -= len(block) + 2
        if room < 0:
            blocks.append(f"*{len(edited) - len(blocks):,} more diffs: see the files of the pull request.*")
            break
        blocks.append(block)
    return [details_block(f"{len(edited):,} diffs", "\n\n".join(blocks))]


def _diff_block(model: ModelChange, site: Site, most: int) -> str:
    body = diff_body(model.diff.split("\n"))
    plus, minus = (sum(line.startswith(sign) for line in body) for sign in "+-")
    title = f"Diff of <code>{tag_text(model.name)}</code>: {plus} added, {minus} removed"
    link = site.link(model)
    where = f"[{code(f'{model.path}:{model.line}' if model.line else model.path)}]({link})\n\n" if link else ""
    return details_block(title, where + fence(model.diff, "diff", most))


# The rules whose reason says itself that the rows change, or which columns do.
ROWS_TOLD = frozenset({"rows-changed", "reads-changed-rows", "settings-changed", "kind-changed", "undecidable"})
COLUMNS_TOLD = frozenset({"column-added", "column-altered", "column-removed", "settings-changed", "kind-changed"})
PREVIEW = " (preview: holds some days only, and is never promoted)"


def model_table(models: Sequence[ModelChange], limit: int, site: Site = NOWHERE, work: str = COMPUTED) -> str:
    cells = (model_row(model, site) for model in models)
    head, rule, *rows = format_table(("Model", "Why", work), cells).split("\n")
    return "\n".join([head, rule, *fit_lines(rows, limit, "| … and {} more | | |")])


def model_row(model: ModelChange, site: Site = NOWHERE) -> tuple[str, str, str]:
    """Return a model in three cells that fit a phone: name and category; reason; computation and table."""
    category, link = category_of(model), site.link(model)
    set_by = f" (set by {code(model.override.who)})" if model.override and model.override.who else ""
    rule = f" <sub>{code(model.rule)}</sub>" if model.rule else ""
    name = f"[{code(model.name)}]({link})" if link else code(model.name)
    return (
        f"{name}<br>{SIGNS.get(category, '🟣')} {NAMES.get(category, inert_text(category))}{set_by}",
        f"{why_words(model)}{rule}",
        f"{computation_words(model)}<br>{table_words(model)}",
    )


def why_words(model: ModelChange) -> str:
    return " ".join(filter(None, (reason_words(model), _column_words(model))))


def reason_words(model: ModelChange) -> str:
    """Return the reason as it follows the model's name, such as `It is not in prod yet`."""
    name_prefix = f"`{model.name}` is "
    return inert_text(
        f"It is {model.reason.removeprefix(name_prefix)}" if model.reason.startswith(name_prefix) else model.reason
    )


def computation_words(model: ModelChange) -> str:
    if model.skipped:
        return "nothing: inputs unchanged"
    if model.kind.upper() in ("VIEW", "EMBEDDED", "EXTERNAL") or not (model.intervals or model.recomputed):
        return "nothing"
    if model.preview and model.shares and not model.intervals:
        return "nothing: its later runs change"
    preview = PREVIEW if model.preview else ""
    if model.first_load and model.intervals:
        return f"first load: all rows{preview}"
    if model.kind.upper() in WHOLE_KINDS:
        return ("the whole table" if model.intervals else "built already") + preview
    if not model.intervals:
        return (f"built already: {format_days(model.needed)}" if model.needed else "built already") + preview
    copied = f"; of these copied (unchanged): {format_days(model.copies)}" if model.copies else ""
    return format_days(model.intervals) + copied + preview


def table_words(model: ModelChange) -> str:
    """Return whose table the model's view shows; a VIEW has no table."""
    if model.change == "removed":
        return "its view is dropped"
    if model.keeps and (model.shares or not model.preview):
        kept_by = code(model.shares or "prod")
        return f"a {'preview' if model.preview else 'table'} of its own, over the rows of {kept_by}"
    noun = "view" if model.kind.upper() == "VIEW" else "table"
    if model.shares:
        return f"{noun} shared with {code(model.shares)}"
    return (f"a {noun} of its own" if model.table else "no table") + (
        ", a preview" if model.preview and model.table else ""
    )


def _column_words(model: ModelChange) -> str:
    """Return the touched columns as a sentence; '' where the reason names them."""
    columns = model.columns
    if columns.every and model.category == "forward_only":
        return ""  # its reason says that existing rows stay
    if columns.every:
        is_explained = model.rule in ROWS_TOLD or model.change in ("added", "removed")
        return "" if is_explained else "Any row may change."
    if model.rule in COLUMNS_TOLD:
        return ""
    groups = (("adds", columns.added), ("alters", columns.altered), ("removes", columns.removed))
    parts = [f"{verb} {first_names([code(name) for name in names], COLUMNS_MOST)}" for verb, names in groups if names]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""
