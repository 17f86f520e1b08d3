"""What edits do to Spark's physical plans, for reviewers. Pure."""

from mergeplan.bot.report.markdown import code, details_block, fit_lines, inert_text
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.physical import PhysicalPlanRow
from mergeplan.planner.contract.physical_words import is_worse, physical_sentence
from mergeplan.planner.wording import count_noun

OPEN = 5  # changes that stand in the open
ROOM = 6_000  # characters of what is folded


def physical_blocks(outcome: PlannerOutcome | None) -> list[str]:
    """Return a line for each change, the worst first; then, folded, the models that were not compared."""
    physical_plan = outcome.physical_plan if outcome else ()
    lines, blocks = physical_lines(physical_plan), list[str]()
    if len(lines) > OPEN:
        body = "\n".join(fit_lines([f"- {line}" for line in lines], ROOM))
        blocks.append(details_block(f"⚠️ {count_noun(len(lines), 'change')} of Spark's physical plans", body))
    elif lines:
        blocks.append("\n".join(["#### Physical plan, before and after\n", *(f"- {line}" for line in lines)]))
    if notes := [f"- {code(row.model)}: {inert_text(row.note)}" for row in physical_plan if row.note]:
        title = f"{count_noun(len(notes), 'physical plan')} not compared"
        blocks.append(details_block(title, "\n".join(fit_lines(notes, ROOM))))
    return blocks


def physical_lines(rows: tuple[PhysicalPlanRow, ...]) -> list[str]:
    changes = [(row.model, change) for row in rows for change in row.changes]
    changes.sort(key=lambda item: not is_worse(item[1]))
    return [f"{'⚠️' if is_worse(c) else '✅'} {code(model)}: {physical_sentence(c, code)}" for model, c in changes]
