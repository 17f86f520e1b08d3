"""Every command, in the order of `/help`; and those that are offered, in the order of the plan comment. Pure."""

from collections.abc import Mapping

from mergeplan.bot.commands.form import Form
from mergeplan.bot.commands.verbs.allow_destructive import ALLOW_DESTRUCTIVE
from mergeplan.bot.commands.verbs.approve_cost import APPROVE_COST
from mergeplan.bot.commands.verbs.backfill import BACKFILL, SKIP_BACKFILL
from mergeplan.bot.commands.verbs.cancel import CANCEL
from mergeplan.bot.commands.verbs.categorize import CATEGORIZE
from mergeplan.bot.commands.verbs.deploy import DEPLOY
from mergeplan.bot.commands.verbs.destroy import DESTROY
from mergeplan.bot.commands.verbs.diff import DIFF
from mergeplan.bot.commands.verbs.extend import EXTEND
from mergeplan.bot.commands.verbs.help import HELP
from mergeplan.bot.commands.verbs.lineage import LINEAGE
from mergeplan.bot.commands.verbs.ok_to_plan import OK_TO_PLAN
from mergeplan.bot.commands.verbs.plan import PLAN_AGAIN
from mergeplan.bot.commands.verbs.restate import RESTATE
from mergeplan.bot.commands.verbs.rollback import ROLLBACK
from mergeplan.bot.commands.verbs.status import STATUS
from mergeplan.bot.commands.verbs.unlock import UNLOCK
from mergeplan.bot.policy.roles import Role

COMMANDS: tuple[Form, ...] = (
    PLAN_AGAIN,
    STATUS,
    DIFF,
    LINEAGE,
    CATEGORIZE,
    RESTATE,
    SKIP_BACKFILL,
    BACKFILL,
    APPROVE_COST,
    ALLOW_DESTRUCTIVE,
    CANCEL,
    ROLLBACK,
    DEPLOY,
    UNLOCK,
    EXTEND,
    DESTROY,
    OK_TO_PLAN,
    HELP,
)
OFFERED = (APPROVE_COST, SKIP_BACKFILL, BACKFILL, DEPLOY, CATEGORIZE, CANCEL, OK_TO_PLAN, ROLLBACK, PLAN_AGAIN)
FORMS: Mapping[str, Form] = {form.verb: form for form in COMMANDS}
DEFAULT_NEEDS: Mapping[str, Role] = {form.verb: form.needs for form in COMMANDS}


def form_of(text: str) -> Form:
    """Return the form of a command; a verb of another version gets a form that waits for the plan."""
    return FORMS.get(text.partition(" ")[0].removeprefix("/"), STATUS)
