"""What the bot is set to: by its operator in MERGEPLAN_* variables, by the project in the base branch's `cicd_bot`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from planner.errors import Place, ProjectError, RequestError
from planner.snapshot.environment import checked_name

Role = Literal["none", "read", "triage", "write", "maintain", "admin"]
ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")
DEFAULT_NEEDS: Mapping[str, Role] = {
    "plan": "write",
    "categorize": "write",
    "cancel": "write",
    "rollback": "maintain",
    "ok-to-plan": "maintain",
    "help": "read",
}


class Settings(BaseSettings):
    """The operator's settings; every field is the variable MERGEPLAN_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix="MERGEPLAN_", extra="ignore", frozen=True)

    webhook_secret: SecretStr = SecretStr("")
    github_api_url: str = ""  # empty: GitHub's own
    github_token: SecretStr = SecretStr("")
    github_app_id: int = 0
    github_private_key: SecretStr = SecretStr("")
    github_private_key_path: Path | None = None
    bot_login: str = ""  # who the bot's comments are by; asked from GitHub when empty
    state_url: SecretStr = SecretStr("")
    openlineage_api_key: SecretStr = SecretStr("")
    notify_url: SecretStr = SecretStr("")  # an incoming webhook of a chat that is told what became of prod
    home: Path = Path(".mergeplan")
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    project_path: str = "."  # the folder of config.yaml within a repository
    repositories: str = ""  # owner/name, comma-separated: what a token (not an App) looks after from the start
    workers: int = Field(default=2, ge=1, le=64)
    sweep_seconds: float = Field(default=60.0, gt=0)
    janitor_hours: float = Field(default=24.0, ge=0)  # between two runs of the janitor for a repository; 0 for none
    polls_per_minute: int = Field(default=600, gt=0)  # of the timer, for one owner; GitHub takes 900 calls a minute
    settle_seconds: float = Field(default=2.0, ge=0)  # quiet time after a superseding push before the next plan
    progress_seconds: float = Field(default=10.0, gt=0)  # at most one progress report in that time
    grace_seconds: float = Field(default=10.0, ge=0)  # between SIGTERM and SIGKILL of a child
    run_timeout_seconds: float = Field(default=6 * 3600, gt=0)
    write_spacing_seconds: float = Field(default=1.0, ge=0)  # GitHub asks for a second between writes
    api_timeout_seconds: int = Field(default=20, gt=0)
    planner_command: tuple[str, ...] = ()  # JSON list; empty: this Python's own planner
    planner_environment: tuple[str, ...] = ()  # JSON list: further variables that a planner child may see
    isolation: Literal["required", "none"] = "required"  # of the projects' own code
    isolation_udf: Literal["", "allow"] = ""  # functions in Python on a Spark whose workers are its operator's
    isolation_memory: int = Field(default=8, ge=1, le=65_536)  # GiB that project code may take
    warm: bool = True  # keep one Spark per project ready

    @field_validator("project_path")
    @classmethod
    def _inside(cls, value: str) -> str:
        if Path(value).is_absolute() or ".." in Path(value).parts:
            raise ValueError("must be a folder inside the repository")
        return value

    @field_validator("notify_url")
    @classmethod
    def _encrypted(cls, value: SecretStr) -> SecretStr:
        url = urlsplit(value.get_secret_value())
        if value.get_secret_value() and url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost"):
            raise ValueError("must be an https:// address")
        return value

    @model_validator(mode="after")
    def _key_from_file(self) -> Self:
        if self.github_private_key_path and not self.github_private_key.get_secret_value():
            key = SecretStr(self.github_private_key_path.read_text())
            object.__setattr__(self, "github_private_key", key)
        return self

    @property
    def is_app(self) -> bool:
        return self.github_app_id > 0

    @property
    def database_url(self) -> str:
        """Where the inbox lives: the shared state database, or a file in the bot's home."""
        return self.state_url.get_secret_value() or f"sqlite:///{self.home.resolve() / 'bot.db'}"

    def secret_paths(self) -> tuple[Path, ...]:
        """The files and folders that project code may not read, wherever they lie; it reads its own checkout."""
        kind, _, rest = self.database_url.partition(":///")
        file = Path(rest.partition("?")[0]) if kind.startswith("sqlite") and rest else None
        return tuple(path.resolve() for path in (self.home, self.github_private_key_path, file) if path)

    def secrets(self) -> tuple[str, ...]:
        """Every text that must never leave this process."""
        url = self.state_url.get_secret_value()
        values = (
            self.webhook_secret,
            self.github_token,
            self.github_private_key,
            self.openlineage_api_key,
            self.notify_url,
        )
        password = urlsplit(url).password if "@" in url else None
        found = [each.get_secret_value() for each in values] + ([url, password] if password else [])
        return tuple(each for each in found if len(each or "") >= 4 and each is not None)


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process's environment; RequestError names the variable that is wrong, never its value."""
    try:
        return Settings(**dict(overrides or {}))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        name = "_".join(str(part) for part in first["loc"][:1]).upper() or "GITHUB_PRIVATE_KEY_PATH"
        raise RequestError(f"MERGEPLAN_{name} is not usable: {first['msg']}.") from None
    except OSError as error:
        raise RequestError(f"MERGEPLAN_GITHUB_PRIVATE_KEY_PATH cannot be read: {error.strerror}.") from None


def checked_for_service(settings: Settings) -> Settings:
    """The settings when a service may start with them; RequestError when a secret that guards the door is missing."""
    if not settings.webhook_secret.get_secret_value().strip():
        raise RequestError(
            "MERGEPLAN_WEBHOOK_SECRET is empty: anybody could send webhooks.",
            hint="Set it to the secret of the GitHub App's webhook.",
        )
    return checked_for_github(settings)


def checked_for_github(settings: Settings) -> Settings:
    """The settings when they can log in to GitHub: a token, or an App's id and private key."""
    if settings.is_app and not settings.github_private_key.get_secret_value().strip():
        raise RequestError(
            "MERGEPLAN_GITHUB_APP_ID is set but the private key is empty.", hint="Set MERGEPLAN_GITHUB_PRIVATE_KEY."
        )
    if not settings.is_app and not settings.github_token.get_secret_value().strip():
        raise RequestError(
            "The bot cannot log in to GitHub.",
            hint="Set MERGEPLAN_GITHUB_APP_ID and MERGEPLAN_GITHUB_PRIVATE_KEY, or MERGEPLAN_GITHUB_TOKEN.",
        )
    return settings


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

    def is_forward_only(self, branch: str) -> bool:
        """True for a branch whose plans are forward-only, by its name."""
        return bool(self.forward_only_suffix) and branch.endswith(self.forward_only_suffix)

    def environment(self, number: int) -> str:
        """The environment of a pull request: `pr_7`."""
        return f"{self.environment_prefix}_{number}"


# Keys of a bot that merges by a /deploy command: this one promotes what people merge, so they ask nothing of it.
WITHOUT_EFFECT = frozenset(
    {"enable_deploy_command", "merge_method", "check_if_blocked_on_deploy_to_prod", "pr_include_unmodified"}
)


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
    permissions: dict[Literal["plan", "categorize", "cancel", "rollback", "ok-to-plan"], Role] = Field(
        default_factory=dict, description="The role on GitHub that a command needs."
    )


def read_config(text: str | None, path: str, default_branch: str) -> BotConfig:
    """The rules that a `config.yaml` gives; ProjectError names the key and its line when one is wrong or unknown."""
    section = _section(text or "", path)
    if section is None:
        return BotConfig(prod_branch=default_branch)
    try:
        heeded = section
        if isinstance(section, dict):
            heeded = {key: value for key, value in section.items() if key not in WITHOUT_EFFECT}
        read = CicdBot.model_validate(heeded)
        prefix, suffix = checked_name(read.pr_environment_name or "pr"), read.forward_only_branch_suffix
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        wrong = (
            "is not a key that mergeplan knows" if first["type"] == "extra_forbidden" else f"is wrong: {first['msg']}"
        )
        line = _line_of(text or "", str(first["loc"][0]) if first["loc"] else "cicd_bot")
        hint = f"Known keys: {', '.join(sorted(CicdBot.model_fields))}."
        raise ProjectError(f"`cicd_bot.{key}` {wrong}.", place=Place(path, line), hint=hint) from None
    except RequestError as error:
        raise ProjectError(error.message, place=Place(path, _line_of(text or "", "pr_environment_name"))) from None
    return BotConfig(
        prod_branch=read.prod_branch_name or read.production_branch_name or default_branch,
        environment_prefix=prefix,
        skip_pr_backfill=bool(read.skip_pr_backfill),
        pr_start=str(read.default_pr_start or ""),
        drop_after_merge=read.invalidate_environment_after_deploy,
        forward_only_suffix="-forward-only" if suffix is None else suffix,
        needs={**DEFAULT_NEEDS, **{str(verb): role for verb, role in read.permissions.items()}},
    )


def _section(text: str, path: str) -> object:
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ProjectError("This file is not valid YAML.", place=Place(path, mark.line + 1 if mark else 0)) from None
    return config.get("cicd_bot") if isinstance(config, dict) else None


def _line_of(text: str, key: str) -> int:
    """The first line after `cicd_bot:` that starts with the key."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        inside = inside or line.startswith("cicd_bot")
        if inside and line.strip().startswith(key):
            return number
    return 0
