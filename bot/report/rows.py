"""What a plan does to rows and columns: the sentences, tables and samples that people are shown. Pure."""

from collections.abc import Sequence

from mergeplan.bot.report.markdown import (
    code,
    details_block,
    fit_lines,
    format_days,
    format_table,
    inert_text,
    table_cell,
    tag_text,
)
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.base import Sample
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.contract.tables import DataDifference
from mergeplan.planner.wording import count_noun, first_names

TOLD = 5  # models whose numbers stand in the open
COLUMNS_MOST = 6
EXPOSURES_MOST = 5  # that stand in the open
ROOM = 8_000  # characters of what is folded
SAMPLES_ROOM = 9_000
HEAD = ("Model", "Rows", "Differ")
Method = tuple[str, str, str]  # how rows were compared: the days, the key, a note
SORTS = ("Changed", "Only before", "Only after")


def rows_changed(diff: DataDifference) -> int:
    """Return the number of rows that differ from before: gone, new, or changed."""
    return diff.rows.only_first + diff.rows.only_second + diff.rows.changed if diff.rows else 0


def _row_counts(differ: Sequence[DataDifference]) -> str:
    """Return `3 rows changed, 2 gone, 1 new` for one model, `rows differ in 2 models` for several, without a sum."""
    if len(differ) > 1:
        return f"rows differ in {count_noun(len(differ), 'model')}"
    rows = differ[0].rows if differ else None
    counts = ((rows.changed, "changed"), (rows.only_first, "gone"), (rows.only_second, "new")) if rows else ()
    parts = [(count, word) for count, word in counts if count]
    (first, verb), *other_counts = parts or [(0, "changed")]
    return ", ".join((f"{count_noun(first, 'row')} {verb}", *(f"{count:,} {word}" for count, word in other_counts)))


def rows_title(outcome: PlannerOutcome | None) -> str:
    """Return `2 rows changed, 1 gone` for the first line; '' if nothing was compared, no number if it is unknown."""
    differences = outcome.data_diff if outcome else ()
    compared = [diff for diff in differences if diff.rows]
    if not compared:
        return ""
    differ, open_ones = [diff for diff in compared if rows_changed(diff)], len(differences) - len(compared)
    if not differ and open_ones:
        return f"no row changed in {count_noun(len(compared), 'model')}, {open_ones} not compared"
    where = " on the days built here" if any(diff.left_out for diff in compared) else ""
    where += " in the columns compared" if any(diff.columns_differ.uncompared for diff in compared) else ""
    open_text = f" ({count_noun(open_ones, 'model')} not compared)" if open_ones else ""
    return f"{_row_counts(differ)}{where}{open_text}"


def rows_blocks(outcome: PlannerOutcome | None, most: int = TOLD) -> list[str]:
    differences = outcome.data_diff if outcome else ()
    if not differences:
        return []
    edited = (
        {model.name for model in outcome.plan.models if model.change == "direct"} if outcome and outcome.plan else ()
    )
    differ = sorted((diff for diff in differences if rows_changed(diff)), key=_change_share, reverse=True)
    differ.sort(key=lambda diff: diff.model not in edited)
    files = [diff for diff in differences if diff.same_files]
    unchanged_diffs = [diff for diff in differences if diff.rows and not (rows_changed(diff) or diff.same_files)]
    unknown = [diff for diff in differences if diff.rows is None and not diff.is_off]
    if not (differ or unchanged_diffs or files or unknown):
        return []
    common = _common_method((*differ, *unchanged_diffs) or files)
    words = "; ".join(filter(None, common))
    blocks = [f"#### Rows, before and after{f' ({words})' if words else ''}"]
    if differ:
        blocks.append(_difference_table(differ[:most], common))
    if differ[most:]:
        blocks.append(
            details_block(
                f"{count_noun(len(differ) - most, 'more model')} whose rows differ",
                _difference_table(differ[most:], common),
            )
        )
    if files:
        blocks.append(
            _name_models(files, "is made of the same files as before", "are made of the same files as before")
        )
    for where in ("", " in the columns that both versions have", " in the columns that were compared"):
        if group := [diff for diff in unchanged_diffs if where == _scope_words(diff)]:
            same = f"the same rows as before{where}"
            blocks.append(_name_models(group, f"holds {same}", f"hold {same}"))
    blocks += [_uncompared_line(diff) for diff in differences if diff.rows and diff.columns_differ.uncompared][:TOLD]
    if unknown:
        body = "\n".join(fit_lines([f"- {code(diff.model)}: {_format_note(diff)}" for diff in unknown], ROOM))
        blocks.append(details_block(f"{count_noun(len(unknown), 'model')} not compared", body))
    first, second, *later_blocks = blocks
    return [f"{first}\n\n{second}", *later_blocks, *_sample_blocks(differ)]


def _scope_words(diff: DataDifference) -> str:
    if diff.columns_differ.uncompared:
        return " in the columns that were compared"
    return " in the columns that both versions have" if diff.columns_differ.removed else ""


def _uncompared_line(diff: DataDifference) -> str:
    names = diff.columns_differ.uncompared
    verb = "was" if len(names) == 1 else "were"
    listed = first_names([code(name) for name in names], COLUMNS_MOST)
    return f"⚠️ {listed} of {code(diff.model)} {verb} not compared: their types have no values in common."


def _change_share(diff: DataDifference) -> tuple[float, int]:
    changed = rows_changed(diff)
    return changed / max(1, diff.before or 0, diff.after or 0), changed


def _difference_table(differences: Sequence[DataDifference], common: Method) -> str:
    rows = (_difference_row(diff, _method_text(diff, common)) for diff in differences)
    first, rule, *lines = format_table(HEAD, rows).split("\n")
    return "\n".join([first, rule, *fit_lines(lines, ROOM, "| … and {} more | | |")])


def _name_models(differences: Sequence[DataDifference], one: str, several: str) -> str:
    if len(differences) <= COLUMNS_MOST:
        return f"{', '.join(code(diff.model) for diff in differences)} {one if len(differences) == 1 else several}."
    lines = fit_lines([f"- {code(diff.model)}: {diff.after or 0:,} rows" for diff in differences], ROOM)
    return details_block(f"{len(differences):,} models {several}", "\n".join(lines))


def _difference_row(diff: DataDifference, how: str) -> tuple[str, ...]:
    rows = diff.rows
    assert rows is not None
    columns = sorted((column for column in diff.columns if column.changed), key=lambda column: -column.changed)
    parts = [f"{code(column.name)} {format_share(column.changed, rows.common)}" for column in columns]
    counts = (
        f"**{rows.changed:,}** changed ({format_share(rows.changed, rows.common)})" if rows.changed else "",
        f"{rows.only_first:,} gone" if rows.only_first else "",
        f"{rows.only_second:,} new" if rows.only_second else "",
    )
    return (
        "<br>".join(filter(None, (code(diff.model), how))),
        f"{diff.before:,} → {diff.after:,}" if diff.before != diff.after else f"{diff.after:,}",
        "<br>".join(filter(None, (", ".join(filter(None, counts)), first_names(parts, COLUMNS_MOST)))),
    )


def _method(diff: DataDifference) -> Method:
    by = f"by {', '.join(map(code, diff.key))}" if diff.key else ""
    return format_days(diff.days), by, inert_text(diff.note)


def _common_method(differences: Sequence[DataDifference]) -> Method:
    """Return what all were compared by, '' for each part in which they differ."""
    parts = [set(texts) for texts in zip(*map(_method, differences), strict=True)]
    days, key, note = (texts.pop() if len(texts) == 1 else "" for texts in parts)
    return days, key, note


def _method_text(diff: DataDifference, common: Method) -> str:
    return "; ".join(part for part, shared in zip(_method(diff), common, strict=True) if part and not shared)


def _format_note(diff: DataDifference) -> str:
    counts = "" if diff.before is None else f" ({diff.before:,} → {diff.after:,} rows)"
    return f"{inert_text(diff.note)}{counts}"


def format_share(part: int, whole: int) -> str:
    """Return `12%` or `< 0.1%`; `100%` only for all."""
    if not whole or not part:
        return "0%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "< 0.1%"
    if part < whole and percent > 99.9:
        return "> 99.9%"
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.1f}%"


def _sample_blocks(differences: Sequence[DataDifference]) -> list[str]:
    blocks, room = [], SAMPLES_ROOM
    for diff in differences:
        sorts = (diff.samples.changed, diff.samples.only_first, diff.samples.only_second)
        parts = [f"**{title}**\n\n{_sample_table(rows)}" for title, rows in zip(SORTS, sorts, strict=True) if rows.rows]
        block = (
            details_block(f"Some of the rows of <code>{tag_text(diff.model)}</code>", "\n\n".join(parts))
            if parts
            else ""
        )
        room -= len(block)
        if block and room > 0:
            blocks.append(block)
    return blocks


def _sample_table(rows: Sample) -> str:
    head = [table_cell(code(_column_title(name))) for name in rows.columns]
    return format_table(
        head, [[code("NULL" if content is None else str(content) or " ") for content in row] for row in rows.rows]
    )


def _column_title(name: str) -> str:
    """Return the title of two columns side by side: `amount before`, `amount after`."""
    for prefix, when in (("s__", "before"), ("t__", "after")):
        if name.startswith(prefix):
            return f"{name.removeprefix(prefix)} {when}"
    return name


def schema_block(outcome: PlannerOutcome | None) -> list[str]:
    differences = [
        (code(diff.model), *row) for diff in (outcome.data_diff if outcome else ()) for row in _schema_rows(diff)
    ]
    if not differences:
        return []
    lines = format_table(("Model", "Column", "Change"), differences).split("\n")
    shown = "\n".join([*lines[:2], *fit_lines(lines[2:], ROOM, "| … and {} more | | |")])
    if len(differences) > TOLD:
        return [details_block(f"{len(differences):,} columns come, go or change", shown)]
    return [f"#### Columns\n\n{shown}"]


def _schema_rows(diff: DataDifference) -> list[tuple[str, ...]]:
    schema = diff.columns_differ
    rows: list[tuple[str, ...]] = [(code(name), f"removed; was {code(kind)}") for name, kind in schema.removed]
    rows += [(code(name), f"{code(old)} → {code(new)}") for name, old, new in schema.retyped]
    rows += [(code(name), f"added as {code(kind)}") for name, kind in schema.added]
    words = ("audited: no NULL", "may hold NULL")
    return rows + [(code(n.column), f"{words[not n.nullable]} → {words[n.nullable]}") for n in diff.nullability]


def impact_block(plan: PlanView | None) -> list[str]:
    below = [model for model in plan.models if model.change == "indirect"] if plan else []
    hit = [model for model in below if model.recomputed or model.category == "indirect_breaking"]  # a view, too
    if not hit:
        return []
    rows = []
    for model in hit:
        names = [code(name) for name in (*model.columns.altered, *model.columns.removed)]
        columns = first_names(names, COLUMNS_MOST) if names and not model.columns.every else "any column"
        above = ", ".join(code(name) for name in model.parents[:COLUMNS_MOST])
        rows.append((code(model.name), columns, above, code(model.owner) if model.owner else ""))
    lines = format_table(("Downstream", "Columns that change", "Reads", "Owner"), rows).split("\n")
    shown = "\n".join([*lines[:2], *fit_lines(lines[2:], ROOM, "| … and {} more | | | |")])
    owners = sorted({model.owner for model in hit if model.owner})
    of = f", owned by {first_names([code(owner) for owner in owners], COLUMNS_MOST)}" if owners else ""
    title = f"{count_noun(len(hit), 'downstream model')} {'reads' if len(hit) == 1 else 'read'} what changes"
    return [f"**{title}**{of}.\n\n" + details_block("Downstream impact by column", shown)]


def exposures_block(plan: PlanView | None) -> list[str]:
    exposures = plan.exposures if plan else ()
    if not exposures:
        return []
    lines = []
    for exposure in exposures:
        about = ", ".join(code(text) for text in (exposure.type, exposure.owner) if text)
        names = first_names([code(name) for name in exposure.models], COLUMNS_MOST)
        lines.append(f"- {code(exposure.name)}{f' ({about})' if about else ''} uses {names}")
    title = f"{count_noun(len(exposures), 'exposure')} {'uses' if len(exposures) == 1 else 'use'} what changes"
    if len(lines) <= EXPOSURES_MOST:
        return ["\n".join([f"**{title}:**", "", *lines])]
    return [details_block(title, "\n".join(fit_lines(lines, ROOM)))]
