"""Who must still agree to a plan, in words: for the approval check, the comment and replies. Pure."""

from mergeplan.bot.policy.approvals import Decision, Need
from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.markdown import NAMES, code
from mergeplan.bot.results import Problem
from mergeplan.planner.wording import first_names

NAMES_MOST = 6


def missing_lines(decision: Decision) -> tuple[str, ...]:
    """Return the reasons why the rules do not let the plan into prod, a sentence each."""
    return (
        *(
            f"{code(block.model)} is {_category_label(block.category)}, which this project's rules keep out of prod."
            for block in decision.blocked
        ),
        *(
            f"{code(reviewer)} requested changes: an approval by this person is needed, or a dismissal."
            for reviewer in decision.objecting
        ),
        *(_need_sentence(need) for need in decision.missing),
        *(_review_age_lines(decision) if decision.outdated else ()),
        *(_format_unread(path) for path in decision.unread),
        *((decision.frozen,) if decision.frozen else ()),
    )


def hold_lines(record: PullRecord) -> tuple[str, ...]:
    """Return the reasons why a merge is not in prod yet, and how it gets there."""
    out = "`/deploy` by someone with `admin` lets it in against the rules; a revert that is merged ends the wait."
    return (*missing_lines(record.rules.decision), out)


def approval_problems(decision: Decision) -> tuple[Problem, ...]:
    return tuple(Problem(line) for line in missing_lines(decision))


def approval_title(decision: Decision) -> str:
    if decision.blocked:
        first_block = decision.blocked[0]
        return f"Blocked by a rule: {first_block.model} is {_category_label(first_block.category)}"
    if decision.objecting:
        return f"{decision.objecting[0]} requested changes"
    if decision.missing:
        first, *other_needs = decision.missing
        people = f" by {_approver_names(first, plain=True)}" if first.approvers else ""
        others_text = f", and {sum(need.left for need in other_needs):,} more" if other_needs else ""
        return f"Waits for {_count_approvals(first)}{people}{others_text}"
    if decision.frozen:
        return decision.frozen.rstrip(".")
    people = first_names(decision.approved_by, NAMES_MOST)
    return f"Approved by {people}" if people else "No approval is needed"


def _need_sentence(need: Need) -> str:
    if need.readers:
        whose = "who owns" if len(need.approvers) == 1 else "who own"
        about = f", {whose} what reads this in another project," if need.approvers else ""
        tail = "" if need.approvers else ": what reads this in another project has no owner on GitHub"
        return f"An approval by {_approver_names(need)}{about} is missing{tail}."
    number, verb = _count_approvals(need), "are" if need.left > 1 else "is"
    owners = ", who owns the file," if need.owners and len(need.approvers) == 1 else ""
    owners = ", who own the file," if need.owners and len(need.approvers) > 1 else owners
    about = first_names([code(model) for model in need.models], NAMES_MOST) or "the edit of the rules"
    return f"{number[0].upper()}{number[1:]} by {_approver_names(need)}{owners} {verb} missing for {about}."


def _count_approvals(need: Need) -> str:
    return f"{need.left} approvals" if need.left > 1 else "an approval"


def _approver_names(need: Need, *, plain: bool = False) -> str:
    names = [approver if plain else code(approver) for approver in need.approvers]
    if not names:
        return "people with `write`" if need.left > 1 else "someone with `write`"
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _review_age_lines(decision: Decision) -> tuple[str, ...]:
    who = first_names([code(reviewer) for reviewer in decision.outdated], NAMES_MOST)
    return (
        f"{who} approved before this plan was shown. An approval is of the plan that the comment shows at that moment.",
    )


def _format_unread(team: str) -> str:
    return (
        f"The members of {code(team)} could not be read: the App needs the organization's permission *Members: read*."
    )


def _category_label(category: str) -> str:
    return NAMES.get(category, category.replace("_", "-")).lower()
