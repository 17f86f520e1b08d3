"""The project's own rules for the bot: `cicd_bot` in the configuration of the base branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from mergeplan.bot.approvals import ReviewRule
from mergeplan.bot.budgets import Budget, DiffRules
from mergeplan.bot.cicd_section import CicdSection
from mergeplan.bot.commands.table import COMMANDS, DEFAULT_NEEDS
from mergeplan.bot.promotion_rules import PromotionRule
from mergeplan.bot.roles import Role
from mergeplan.planner.contract.base import Detail
from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.snapshot.environment import parse_environment_name

MergeMethod = Literal["merge", "squash", "rebase"]


@dataclass(frozen=True)
class BotConfig:
    """The project's own rules, read from the base branch."""

    prod_branch: str = "main"
    environment_prefix: str = "pr"
    skip_pr_backfill: bool = False
    pr_start: str = ""  # the first day that a pull request's environment computes; '' for all of history
    drop_after_merge: bool = True
    forward_only_suffix: str = "-forward-only"  # of branches whose plans are forward-only; '' for none
    needs: Mapping[str, Role] = field(default_factory=lambda: dict(DEFAULT_NEEDS))
    budget: Budget = (None, None)  # of a pull request's environment
    diff: DiffRules = field(default_factory=lambda: DiffRules())
    physical_plan: bool = True  # what edits do to Spark's physical plans is shown
    namespace: str = ""  # what commands begin with; '' where `/plan` is enough
    rules: tuple[ReviewRule, ...] = ()
    deployments: bool = False  # GitHub's, of environments and prod
    deploys: bool = False  # `/deploy` promotes, and then merges
    opens_reverts: bool = True  # after a `/rollback`
    merge_method: MergeMethod = "merge"
    skip_label: str = ""  # pull requests with it are planned only when somebody asks; '' for none

    def is_forward_only(self, branch: str) -> bool:
        """True for a branch whose plans are forward-only, by its name."""
        return bool(self.forward_only_suffix) and branch.endswith(self.forward_only_suffix)

    @property
    def prod_fields(self) -> Mapping[str, Any]:
        """What is kept of the rules in prod's record, for what is shown and taken in while nobody reads them."""
        own = {verb: role for verb, role in self.needs.items() if DEFAULT_NEEDS.get(verb) != role}
        needs = tuple(sorted(own.items()))
        return {"namespace": self.namespace, "needs": needs, "deploys": self.deploys, "skip_label": self.skip_label}

    def environment(self, number: int) -> str:
        """The environment of a pull request: `pr_7`."""
        return f"{self.environment_prefix}_{number}"


# Keys that are another bot's: what they ask for is so here, or GitHub sees to it.
WITHOUT_EFFECT = frozenset({"check_if_blocked_on_deploy_to_prod", "pr_include_unmodified"})


def _restore_off(value: object) -> object:
    """YAML reads `off` as false."""
    if isinstance(value, dict):
        return {key: _restore_off(content) for key, content in value.items()}
    return "off" if value is False else value


def _check_rule(word: str) -> str:
    if word not in RULED:
        raise ValueError(f"it is one of {', '.join(RULED)}")
    return word


RULED = tuple(form.verb for form in COMMANDS if not form.anybody)
Ruled = Annotated[str, AfterValidator(_check_rule), WithJsonSchema({"enum": list(RULED)})]


class DiffBudget(BaseModel):
    """What comparing rows may cost."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = Field(default=60.0, ge=0, le=3600, description="For all models of a plan together.")
    rows: int = Field(default=50_000_000, ge=0, description="Of a model's tables together; larger ones are counted.")


class CostBudget(BaseModel):
    """What a pull request's environment may cost without anybody's approval."""

    model_config = ConfigDict(extra="forbid")

    bytes: int | None = Field(default=None, ge=0, description="That its queries read, by Spark's statistics.")
    seconds: float | None = Field(default=None, ge=0, description="Of its batches, by what such batches took before.")


class CicdBot(BaseModel):
    """`cicd_bot` as it is written; unknown keys are refused, so that no rule is silently ignored."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["github"] = Field(default="github", description="Where pull requests are.")
    prod_branch_name: str | None = Field(
        default=None,
        max_length=200,
        description="The branch that prod follows; the default branch otherwise.",
    )
    production_branch_name: str | None = Field(
        default=None, max_length=200, description="Another name of `prod_branch_name`."
    )
    pr_environment_name: str | None = Field(
        default=None, description="What environments of pull requests begin with: `pr` makes `pr_7`."
    )
    skip_pr_backfill: bool | None = Field(
        default=None, description="Whether new tables stay empty in a pull request's environment."
    )
    default_pr_start: date | str | None = Field(
        default=None, description="The first day that a pull request's environment computes; all of history otherwise."
    )
    invalidate_environment_after_deploy: bool = Field(
        default=True, description="Whether a pull request's environment is dropped after the merge."
    )
    forward_only_branch_suffix: str | None = Field(
        default=None, max_length=100, description="What branches end with whose plans are forward-only."
    )
    budget: CostBudget | None = Field(
        default=None, description="What an environment may cost; more waits for `/approve-cost`."
    )
    data_diff: Annotated[Detail | dict[str, Detail], BeforeValidator(_restore_off)] = Field(
        default="counts",
        description="What is shown of changed rows: `off`, `counts` or `sample`; or by name, glob or `tag:x`, the last "
        "that fits a model counts.",
    )
    data_diff_unmasked: tuple[str, ...] = Field(
        default=(), description="Columns whose values samples of changed rows show as they are."
    )
    data_diff_budget: DiffBudget | None = Field(default=None, description="What comparing rows may cost.")
    physical_plan: bool = Field(
        default=True, description="Whether the physical plans of edited queries are compared with those before."
    )
    permissions: dict[Ruled, Role] = Field(default_factory=dict, description="The role on GitHub that a command needs.")
    rules: tuple[PromotionRule, ...] = Field(
        default=(), description="Who must approve which changes, what is blocked, and when prod is frozen."
    )
    deployments: bool = Field(
        default=False, description="Whether environments and prod are shown as deployments on GitHub."
    )
    enable_deploy_command: bool = Field(default=False, description="Whether `/deploy` promotes and then merges.")
    merge_method: MergeMethod = Field(default="merge", description="How `/deploy` merges.")
    open_revert: bool = Field(
        default=True, description="Whether `/rollback` opens a pull request that reverts the merge."
    )
    skip_label: str | None = Field(
        default=None,
        max_length=50,
        pattern=r"^\S(.*\S)?$",
        description="A label: a pull request that bears it is planned only when somebody types `/plan`.",
    )
    command_namespace: str | None = Field(
        default=None,
        pattern=r"^[#/]?[A-Za-z][A-Za-z0-9-]{0,30}$",
        description="What commands begin with: with `warehouse` they are `/warehouse plan`.",
    )


def config_of(section: CicdSection, default_branch: str) -> BotConfig:
    """The rules that a section gives; ProjectError names the key and its line when one is wrong or unknown."""
    if section.value is None:
        return BotConfig(prod_branch=default_branch)
    heeded = section.value
    if isinstance(heeded, dict):
        heeded = {key: value for key, value in heeded.items() if key not in WITHOUT_EFFECT}
    try:
        read = CicdBot.model_validate(heeded)
        prefix = parse_environment_name(read.pr_environment_name or "pr")
    except ValidationError as error:
        raise _wrong_key(section, error) from None
    except RequestError as error:
        raise ProjectError(error.message, place=section.place("pr_environment_name")) from None
    suffix = read.forward_only_branch_suffix
    return BotConfig(
        prod_branch=read.prod_branch_name or read.production_branch_name or default_branch,
        environment_prefix=prefix,
        skip_pr_backfill=bool(read.skip_pr_backfill),
        pr_start=str(read.default_pr_start or ""),
        drop_after_merge=read.invalidate_environment_after_deploy,
        forward_only_suffix="-forward-only" if suffix is None else suffix,
        needs={**DEFAULT_NEEDS, **{str(verb): role for verb, role in read.permissions.items()}},
        budget=(read.budget.bytes, read.budget.seconds) if read.budget else (None, None),
        diff=_diff_rules(read),
        physical_plan=read.physical_plan,
        namespace=(read.command_namespace or "").lstrip("#/").lower(),
        rules=tuple(rule.rule() for rule in read.rules),
        deployments=read.deployments,
        deploys=read.enable_deploy_command,
        opens_reverts=read.open_revert,
        merge_method=read.merge_method,
        skip_label=read.skip_label or "",
    )


def _wrong_key(section: CicdSection, error: ValidationError) -> ProjectError:
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    unknown = first["type"] == "extra_forbidden"
    wrong = "is not a key that mergeplan knows" if unknown else f"is wrong: {first['msg']}"
    hint = f"Known keys: {', '.join(sorted(CicdBot.model_fields))}."
    return ProjectError(f"`cicd_bot.{key}` {wrong}.", place=section.place(key), hint=hint)


def _diff_rules(read: CicdBot) -> DiffRules:
    rules: dict[str, Detail] = {"*": "counts"}
    rules |= read.data_diff if isinstance(read.data_diff, dict) else {"*": read.data_diff}
    budget = read.data_diff_budget or DiffBudget()
    return DiffRules(tuple(rules.items()), read.data_diff_unmasked, budget.seconds, budget.rows)
