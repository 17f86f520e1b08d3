"""Transitions of a merge on its way to prod, of deploys and of rollbacks. Pure."""

from dataclasses import replace

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.pull_parts import NOT_REVERSED, PullDeploy, PullRollback, Reversal
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.transitions.planning import report_progress


def await_promotion(record: PullRecord, merge_sha: str) -> PullRecord:
    """Hand a merge to prod; a plan that was still to come stands for nothing that was merged."""
    is_planned = record.state not in (PullState.NEW, PullState.WAITING, PullState.PLANNING)
    return replace(
        record,
        state=PullState.MERGED,
        reason="",
        base=record.base if is_planned else replace(record.base, tree=""),
        run=replace(record.run, progress="Waiting for prod's turn."),
        wishes=replace(record.wishes, overrides=(), again=False),
        promotion=replace(record.promotion, merge_sha=merge_sha),
    )


def begin_promotion(record: PullRecord, merge_sha: str, run_id: str) -> PullRecord:
    return replace(
        record,
        state=PullState.MERGED,
        reason="",
        run=replace(record.run, id=run_id, progress="Promoting to prod."),
        wishes=replace(record.wishes, overrides=(), again=False),
        rules=replace(record.rules, held=False),
        promotion=replace(record.promotion, merge_sha=merge_sha),
    )


def conclude_promotion(record: PullRecord, lines: str, revision: int, reason: str) -> PullRecord:
    """Store that prod shows the merge since a revision; 0 where nothing had to be promoted."""
    return replace(
        record,
        state=PullState.PROMOTED,
        reason=reason,
        run=replace(record.run, attempts=0, progress=""),
        promotion=replace(record.promotion, lines=lines, revision=revision, unlock_by=""),
        rollback=replace(record.rollback, reversal=NOT_REVERSED),
        deploy=_end_deploy(record.deploy),
    )


def fail_promotion(record: PullRecord, lines: str) -> PullRecord:
    return replace(
        record,
        state=PullState.UNPROMOTED,
        reason="",
        run=replace(record.run, progress=""),
        promotion=replace(record.promotion, lines=lines, unlock_by=""),
        deploy=_end_deploy(record.deploy),
    )


def settle_merge(record: PullRecord, reason: str, merge_sha: str = "", revision: int = 0) -> PullRecord:
    """Store that prod shows a merge that needed no promotion; since that revision, if another promotion brought it."""
    promotion = record.promotion
    since, merge = revision or promotion.revision, merge_sha or promotion.merge_sha
    promotion, rules = replace(promotion, merge_sha=merge, revision=since), replace(record.rules, held=False)
    return replace(
        report_progress(record, ""), state=PullState.PROMOTED, reason=reason, rules=rules, promotion=promotion
    )


def hold_merge(record: PullRecord, judged: PullRecord, merge_sha: str, decision: Decision) -> PullRecord:
    """Keep a merge from prod until the rules let it in; reviews are of the plan as it was judged."""
    return replace(
        record,
        state=PullState.MERGED,
        head=judged.head,
        reason="",
        source=replace(record.source, author=judged.source.author, base_ref=judged.source.base_ref),
        place=replace(record.place, site=judged.place.site, folder=judged.place.folder),
        base=judged.base,
        run=replace(record.run, lines=judged.run.lines, progress=""),
        wishes=replace(record.wishes, overrides=(), again=False),
        rules=replace(record.rules, held=True, decision=decision, changes_rules=judged.rules.changes_rules),
        promotion=replace(record.promotion, merge_sha=merge_sha),
    )


def set_decision(record: PullRecord, decision: Decision) -> PullRecord:
    return replace(record, rules=replace(record.rules, decision=decision))


def begin_deploy(record: PullRecord, prod_revision: int) -> PullRecord:
    return replace(record, deploy=replace(record.deploy, stage="promoting", start=prod_revision))


def promote_deploy(record: PullRecord, lines: str, revision: int) -> PullRecord:
    """Store that prod shows a pull request that is still to be merged."""
    promotion = replace(record.promotion, lines=lines, revision=revision)
    return replace(record, promotion=promotion, deploy=replace(record.deploy, stage="promoted"))


def conclude_deploy(record: PullRecord, merge_sha: str) -> PullRecord:
    merged = settle_merge(record, "", merge_sha)
    return replace(merged, deploy=replace(_end_deploy(record.deploy), result=""))


def refuse_deploy(record: PullRecord, reason: str) -> PullRecord:
    promotion = replace(record.promotion, lines="", revision=0)
    return replace(record, promotion=promotion, deploy=replace(_end_deploy(record.deploy), result=reason))


def _end_deploy(deploy: PullDeploy) -> PullDeploy:
    return PullDeploy(result=deploy.result)


def begin_rollback(record: PullRecord, prod_revision: int, reversal: Reversal) -> PullRecord:
    return replace(record, rollback=replace(record.rollback, start=prod_revision, reversal=reversal))


def refuse_rollback(record: PullRecord, reason: str) -> PullRecord:
    return replace(record, reason=reason, rollback=PullRollback())


def conclude_rollback(record: PullRecord, reason: str, reversal: Reversal) -> PullRecord:
    """Store that prod went back; an earlier request for another run does not promote it again."""
    wishes, rollback = replace(record.wishes, again=False), PullRollback(reversal=reversal)
    return replace(record, state=PullState.ROLLED_BACK, reason=reason, wishes=wishes, rollback=rollback)
