"""The project's own rules for the bot: `cicd_bot` in the configuration of the base branch.

A key is stated once, as a field of `BotConfig`: the schema of config.yaml, the known keys that an error lists and the
rules that the bot reads follow from it. A value is stored as it counts: two spellings of a rule are equal.
"""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from mergeplan.bot.branches import find_conflict, normalize_branches
from mergeplan.bot.budgets import Budget, DiffRules
from mergeplan.bot.cicd_section import CicdSection
from mergeplan.bot.commands.table import COMMANDS, DEFAULT_NEEDS
from mergeplan.bot.policy.approvals import ReviewRule
from mergeplan.bot.policy.promotion_rules import PromotionRule
from mergeplan.bot.policy.roles import Role
from mergeplan.bot.projects import check_repository
from mergeplan.bot.records import ProdRecord
from mergeplan.planner.contract.base import Detail
from mergeplan.planner.data_field import describe
from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.parsing.sql.dates import parse_instant
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.snapshot.environment import parse_environment_name
from mergeplan.planner.wording import validation_text

MergeMethod = Literal["merge", "squash", "rebase"]

# Keys that are another bot's: what they ask for is so here, or GitHub sees to it.
WITHOUT_EFFECT = frozenset({"check_if_blocked_on_deploy_to_prod", "pr_include_unmodified"})


def _restore_off(value: object) -> object:
    """Restore `off`, which YAML reads as false."""
    if isinstance(value, dict):
        return {key: _restore_off(content) for key, content in value.items()}
    return "off" if value is False else value


def _check_rule(word: str) -> str:
    if word not in RULED:
        raise ValueError(f"it is one of {', '.join(RULED)}")
    return word


RULED = tuple(form.verb for form in COMMANDS if not form.anybody)
Ruled = Annotated[str, AfterValidator(_check_rule), WithJsonSchema({"enum": list(RULED)})]


def _null_as(default: object) -> AfterValidator:
    """Read a key without a value as its default."""
    return AfterValidator(lambda value: default if value is None else value)


def _by_selector(detail: Detail | dict[str, Detail]) -> dict[str, Detail]:
    """Return the detail by selector; one word applies to all models, and models without a selector are counted."""
    return {"*": "counts", **detail} if isinstance(detail, dict) else {"*": detail}


class DiffBudget(BaseModel):
    """The limits for comparing rows."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = Field(default=60.0, ge=0, le=3600, description="Seconds for all models of a plan together.")
    rows: int = Field(
        default=50_000_000,
        ge=0,
        description="Rows of a model's tables together; rows of larger tables are only counted.",
    )


class CostBudget(BaseModel):
    """What a pull request's environment may cost without anybody's approval."""

    model_config = ConfigDict(extra="forbid")

    bytes: int | None = Field(default=None, ge=0, description="Bytes that its queries read, by Spark's statistics.")
    seconds: float | None = Field(
        default=None, ge=0, description="Seconds of its batches, by the time of earlier ones."
    )


DiffDetail = Annotated[Detail | dict[str, Detail], BeforeValidator(_restore_off), AfterValidator(_by_selector)]


class BotConfig(BaseModel):
    """`cicd_bot` as it is written; unknown keys are refused, so that no rule is silently ignored."""

    model_config = ConfigDict(title="CicdBot", extra="forbid", frozen=True, validate_default=True)

    type: Literal["github"] = describe("github", "The host of pull requests.")
    prod_branch_name: str | None = Field(
        default=None, max_length=200, description="The branch that prod follows; the default branch otherwise."
    )
    production_branch_name: str | None = Field(
        default=None, max_length=200, description="Another name of `prod_branch_name`."
    )
    branch_environments: Annotated[dict[str, str] | None, AfterValidator(normalize_branches)] = describe(
        None, "Branches that have an environment of their own, each with its name: `{qa: qa}`."
    )
    pr_environment_name: Annotated[str | None, AfterValidator(lambda name: parse_environment_name(name or "pr"))] = (
        describe(None, "The prefix of pull requests' environments: `pr` makes `pr_7`.")
    )
    skip_pr_backfill: Annotated[bool | None, AfterValidator(bool)] = describe(
        None, "Whether new tables stay empty in a pull request's environment."
    )
    default_pr_start: Annotated[
        date | str | None,
        AfterValidator(lambda day: str(day) if day and parse_instant(str(day), datetime.now(UTC)) else ""),
    ] = describe(None, "The first day that a pull request's environment computes; all of history otherwise.")
    invalidate_environment_after_deploy: bool = describe(
        True, "Whether a pull request's environment is dropped after the merge."
    )
    forward_only_branch_suffix: Annotated[str | None, _null_as("-forward-only")] = Field(
        default=None, max_length=100, description="The suffix of branches whose plans are forward-only."
    )
    budget: Annotated[CostBudget | None, _null_as(CostBudget())] = describe(
        None, "The most that an environment may cost; more waits for `/approve-cost`."
    )
    data_diff: DiffDetail = describe(
        "counts",
        "How changed rows are shown: `off`, `counts` or `sample`, for all models or by name, glob or "
        "`tag:x`. The last match applies.",
    )
    data_diff_unmasked: tuple[str, ...] = describe(
        (), "Columns whose values are not masked in samples of changed rows."
    )
    data_diff_budget: Annotated[DiffBudget | None, _null_as(DiffBudget())] = describe(
        None, "The limits for comparing rows."
    )
    physical_plan: bool = describe(True, "Whether the physical plans of edited queries are compared with those before.")
    permissions: Annotated[dict[Ruled, Role], AfterValidator(lambda own: {**DEFAULT_NEEDS, **own})] = Field(
        default_factory=dict, description="The role on GitHub that a command needs."
    )
    rules: tuple[PromotionRule, ...] = describe((), "Rules about approvals, blocked changes and freezes of prod.")
    deployments: bool = describe(False, "Whether environments and prod are shown as deployments on GitHub.")
    enable_deploy_command: bool = describe(False, "Whether `/deploy` promotes and then merges.")
    merge_method: MergeMethod = describe("merge", "How `/deploy` merges.")
    open_revert: bool = describe(True, "Whether `/rollback` opens a pull request that reverts the merge.")
    show_reads_to: tuple[Annotated[str, AfterValidator(check_repository)], ...] = Field(
        default=(),
        max_length=100,
        description="Repositories, as `owner/name`, whose pull requests may name the models, columns and exposures of "
        "this project that read their tables. All others of the owner see a number and the owners.",
    )
    skip_label: Annotated[str | None, _null_as("")] = Field(
        default=None,
        max_length=50,
        pattern=r"^\S(.*\S)?$",
        description="A label: a pull request that has it is planned only on `/plan`.",
    )
    command_namespace: Annotated[str | None, AfterValidator(lambda word: (word or "").lstrip("#/").lower())] = Field(
        default=None,
        pattern=r"^[#/]?[A-Za-z][A-Za-z0-9-]{0,30}$",
        description="The prefix of commands: with `warehouse` they are `/warehouse plan`.",
    )

    @property
    def prod_branch(self) -> str:
        return self.prod_branch_name or ""

    def environment(self, number: int) -> str:
        """Return the environment of a pull request: `pr_7`."""
        return f"{self.pr_environment_name}_{number}"

    def is_forward_only(self, branch: str) -> bool:
        suffix = self.forward_only_branch_suffix
        return branch.endswith(suffix) if suffix else False

    @property
    def cost_budget(self) -> Budget:
        """The bytes and seconds of a pull request's environment."""
        return (self.budget.bytes, self.budget.seconds) if self.budget else (None, None)

    @property
    def diff(self) -> DiffRules:
        detail, budget = tuple(_by_selector(self.data_diff).items()), self.data_diff_budget or DiffBudget()
        return DiffRules(detail, self.data_diff_unmasked, budget.seconds, budget.rows)

    @property
    def review_rules(self) -> tuple[ReviewRule, ...]:
        return tuple(rule.rule() for rule in self.rules)

    def update_prod(self, prod: ProdRecord) -> ProdRecord:
        """Store in prod's record the rules that are shown and applied when no configuration is read."""
        needs = {verb: role for verb, role in self.permissions.items() if DEFAULT_NEEDS.get(verb) != role}
        return replace(
            prod,
            namespace=self.command_namespace or "",
            needs=tuple(sorted(needs.items())),
            skip_label=self.skip_label or "",
            deploys=self.enable_deploy_command,
        )


def config_of(section: CicdSection, default_branch: str) -> BotConfig:
    """Return the rules of a section; raise ProjectError, with key and line, for a wrong or unknown key."""
    heeded = {} if section.value is None else section.value
    if isinstance(heeded, dict):
        heeded = {key: value for key, value in heeded.items() if key not in WITHOUT_EFFECT}
    try:
        config = BotConfig.model_validate(heeded)
    except ValidationError as error:
        raise _wrong_key(section, error) from None
    except RequestError as error:
        raise ProjectError(error.message, place=section.place(_environment_key(section))) from None
    branch = config.prod_branch_name or config.production_branch_name or default_branch
    wrong, conflict = find_conflict(config.branch_environments or {}, branch, config.pr_environment_name or "")
    if conflict:
        hint = "Name another environment, or take the branch out."
        raise ProjectError(
            f"`cicd_bot.branch_environments`: {conflict}.",
            place=section.place(f"branch_environments.{wrong}"),
            hint=hint,
        )
    return config.model_copy(update={"prod_branch_name": branch, "production_branch_name": None})


def _environment_key(section: CicdSection) -> str:
    """Return the key whose value cannot name an environment."""
    value = section.value if isinstance(section.value, dict) else {}
    branches = value.get("branch_environments")
    for branch, name in branches.items() if isinstance(branches, dict) else ():
        try:
            parse_environment_name(str(name))
        except RequestError:
            return f"branch_environments.{branch}"
    return "pr_environment_name"


def _wrong_key(section: CicdSection, error: ValidationError) -> ProjectError:
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    unknown = first["type"] == "extra_forbidden"
    wrong = "is not a key that mergeplan knows" if unknown else f"is wrong: {validation_text(first)}"
    hint = did_you_mean(key, BotConfig.model_fields) if unknown and len(first["loc"]) == 1 else ""
    return ProjectError(f"`{f'cicd_bot.{key}'.rstrip('.')}` {wrong}.", place=section.place(key), hint=hint)
