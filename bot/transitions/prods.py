"""The transitions of a prod's record: each takes the record as it is stored and returns the next one. Pure."""

from dataclasses import dataclass, replace

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.records import Prod, ProdRecord


@dataclass(frozen=True)
class ProdCommit:
    branch: str
    folder: str
    commit: str


def request_build(prod: ProdRecord) -> ProdRecord:
    return replace(prod, again=True)


def show_commit(prod: ProdRecord, at: ProdCommit, revision: int, plan_id: str) -> ProdRecord:
    return replace(
        prod,
        state=Prod.READY,
        branch=at.branch,
        folder=at.folder,
        commit=at.commit,
        promoted_commit=at.commit,
        revision=revision,
        plan_id=plan_id,
        attempts=0,
        again_at=0.0,
        run_lines="",
    )


def set_revision(prod: ProdRecord, revision: int, plan_id: str) -> ProdRecord:
    return replace(prod, revision=revision, plan_id=plan_id, attempts=0)


def fail_build(prod: ProdRecord, commit: str, lines: str, attempts: int, again_at: float) -> ProdRecord:
    """Store that the first build failed; `again_at` is in seconds of the epoch, 0.0 when trying again is no use."""
    return replace(prod, state=Prod.FAILED, commit=commit, run_lines=lines, attempts=attempts, again_at=again_at)


def take_commit(prod: ProdRecord, commit: str) -> ProdRecord:
    return replace(prod, commit=commit)


def hold_push(prod: ProdRecord, commit: str, decision: Decision) -> ProdRecord:
    return replace(prod, held=commit, held_by=decision)


def record_sweep(prod: ProdRecord, at: float) -> ProdRecord:
    """Store when the janitor began its work, in seconds of the epoch."""
    return replace(prod, swept_at=at)
