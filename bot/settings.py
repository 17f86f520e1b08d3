"""What the bot is set to by its operator, in MERGEPLAN_* variables."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote, unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from mergeplan.bot.fetching.origins import address_secrets, check_hosts
from mergeplan.bot.projects import check_repository, read_folders
from mergeplan.bot.secret_files import check_secret_files
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.mode import ADDRESSES, FOLDERS, SPARK, spark_access_of
from mergeplan.planner.wording import validation_text

TOKEN = re.compile(r"\b(?:gh[pousr]\\?_(?:[A-Za-z0-9-]|\\?_){16,}|github\\?_pat\\?_(?:[A-Za-z0-9]|\\?_){20,})")
SECRET_MIN = 4  # characters
ESCAPES = "(?:\\\\|\u200b|<wbr>)*"  # what Markdown may have between the characters of a text: see `report/markdown`
API_VERSION = "2026-03-10"  # see https://docs.github.com/rest/about-the-rest-api/api-versions
ACTIONS_LOGIN = "github-actions[bot]"  # whom a workflow's own token stands for


class Settings(BaseSettings):
    """The operator's settings; every field is the variable MERGEPLAN_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix="MERGEPLAN_", extra="ignore", frozen=True)

    secrets_dir: Path | None = None  # a folder with a file for each of the others that is not in the environment
    webhook_secret: SecretStr = SecretStr("")
    github_api_url: str = ""  # empty: GitHub's own
    github_api_version: str = API_VERSION  # of REST; an Enterprise Server may have only an older one
    github_token: SecretStr = SecretStr("")
    github_app_id: int = 0
    github_private_key: SecretStr = SecretStr("")
    github_private_key_path: Path | None = None
    bot_login: str = ""  # who the bot's comments are by; asked from GitHub when empty
    state_url: SecretStr = SecretStr("")
    openlineage_api_key: SecretStr = SecretStr("")
    notify_url: SecretStr = SecretStr("")  # an incoming webhook of a chat that gets what became of prod
    home: Path = Path(".mergeplan")
    public_url: str = ""  # where people reach the service's pages; empty: the checks lead to none
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    project_path: str = "."  # the folder of config.yaml within a repository; of several projects, comma-separated
    repositories: str = ""  # owner/name, comma-separated: what a token (not an App) looks after from the start
    other_catalogs: Path | None = None  # a file: where catalogs of projects of other services are
    workers: int = Field(default=2, ge=1, le=64)
    sweep_seconds: float = Field(default=60.0, gt=0)
    janitor_hours: float = Field(default=24.0, ge=0)  # between two runs of the janitor for a repository; 0 for none
    polls_per_minute: int = Field(default=600, gt=0)  # of the timer, for one owner; GitHub takes 900 calls a minute
    settle_seconds: float = Field(default=2.0, ge=0)  # quiet time after a superseding push before the next plan
    progress_seconds: float = Field(default=10.0, gt=0)  # at most one progress report in that time
    grace_seconds: float = Field(default=10.0, ge=0)  # between SIGTERM and SIGKILL of a child
    run_timeout_seconds: float = Field(default=6 * 3600, gt=0)
    plan_timeout_seconds: float = Field(default=1800, gt=0)  # until a plan is shown; what it builds takes longer
    write_spacing_seconds: float = Field(default=1.0, ge=0)  # GitHub asks for a second between writes
    api_timeout_seconds: int = Field(default=20, gt=0)
    planner_command: tuple[str, ...] = ()  # JSON list; empty: this Python's own planner
    planner_environment: tuple[str, ...] = ()  # JSON list: further variables that a planner child may see
    isolation: Literal["required", "none"] = "required"  # of the projects' own code
    isolation_udf: Literal["", "allow"] = ""  # functions in Python on a Spark whose workers are its operator's
    isolation_spark: Literal["", "none"] = ""  # `none`: the Java of the service's own Spark is not confined
    isolation_spark_addresses: str | None = None  # what it may connect to
    isolation_spark_folders: str = ""  # what it may read and write besides its own
    isolation_memory: int = Field(default=8, ge=1, le=65_536)  # GiB that project code may take
    packages_builds: Literal["", "allow"] = ""  # `allow`: sources in PIP_FIND_LINKS are built, isolated
    packages_hosts: str = ""  # further hosts, comma-separated, that hubs and indexes may lead to
    packages_seconds: float = Field(default=600.0, gt=0)  # to install a project's packages
    warm: bool = True  # keep one Spark per project ready

    @field_validator("project_path")
    @classmethod
    def _check_folders(cls, value: str) -> str:
        read_folders(value)
        return value

    @field_validator("repositories")
    @classmethod
    def _check_repositories(cls, value: str) -> str:
        for name in filter(None, map(str.strip, value.split(","))):
            check_repository(name)
        return value

    @field_validator("github_api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        if value and not re.match(r"https?://[^/]", value):
            raise ValueError("must be an address such as `https://github.example.com/api/v3`")
        return value

    @model_validator(mode="after")
    def _spark_access(self) -> Self:
        try:
            spark_access_of(self.spark_variables())
        except RequestError as error:
            raise ValueError(error.message) from None
        return self

    @field_validator("notify_url")
    @classmethod
    def _check_notify_url(cls, value: SecretStr) -> SecretStr:
        return SecretStr(_check_https(value.get_secret_value()))

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, value: str) -> str:
        url = urlsplit(_check_https(value))
        if url.query or url.fragment or "@" in url.netloc:
            raise ValueError("must be an address without query, fragment and user")
        return value.rstrip("/")

    @field_validator("packages_hosts")
    @classmethod
    def _check_hosts(cls, value: str) -> str:
        try:
            check_hosts(value)
        except RequestError as error:
            raise ValueError(error.message) from None
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
    def has_buttons(self) -> bool:
        """True where a press of a check's button gets here: its webhook goes to the App that made the check."""
        return self.is_app and bool(self.webhook_secret.get_secret_value())

    @property
    def project_folders(self) -> tuple[str, ...]:
        """The folders of the projects that are looked for in every repository."""
        return read_folders(self.project_path)

    @property
    def database_url(self) -> str:
        """Where the inbox lives: the shared state database, or a file in the bot's home."""
        return self.state_url.get_secret_value() or f"sqlite:///{self.home.resolve() / 'bot.db'}"

    def secret_paths(self) -> tuple[Path, ...]:
        """Return the files and folders that project code may not read, anywhere on disk; it reads its own checkout."""
        kind, _, database_path = self.database_url.partition(":///")
        file = Path(database_path.partition("?")[0]) if kind.startswith("sqlite") and database_path else None
        paths = (self.home, self.github_private_key_path, self.secrets_dir, self.other_catalogs, file)
        return tuple(path.resolve() for path in paths if path)

    def spark_variables(self) -> dict[str, str]:
        """Return the variables that tell a planner child how far to confine its own Spark."""
        addresses = self.isolation_spark_addresses
        variables = {SPARK: self.isolation_spark, ADDRESSES: addresses, FOLDERS: self.isolation_spark_folders}
        return {name: value for name, value in variables.items() if value or (name == ADDRESSES and value is not None)}

    def secrets(self) -> tuple[str, ...]:
        """Return every text that must never leave this process."""
        url = self.state_url.get_secret_value()
        values = (
            self.webhook_secret,
            self.github_token,
            self.github_private_key,
            self.openlineage_api_key,
            self.notify_url,
        )
        password = (urlsplit(url).password or "") if "@" in url else ""
        secrets = [secret.get_secret_value() for secret in values]
        secrets += [url, password, unquote(password)] if password else []
        secrets += address_secrets(os.environ)  # of proxies, hubs and indexes
        return tuple(secret for secret in secrets if len(secret or "") >= SECRET_MIN and secret is not None)


def redact_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return the text without the secrets, as they are or escaped, and without what looks like a GitHub token."""
    for secret in secrets:
        if len(secret) >= SECRET_MIN:
            text = _secret_pattern(secret).sub("***", text)
    return TOKEN.sub("***", text)


@cache
def _secret_pattern(secret: str) -> re.Pattern[str]:
    """Return a pattern of a secret in Markdown and HTML, in which white space may be other white space."""
    parts = [r"\s+" if part.isspace() else _character_pattern(part) for part in re.findall(r"\s+|\S", secret.strip())]
    return re.compile(ESCAPES.join(parts))


def _character_pattern(character: str) -> str:
    forms = dict.fromkeys((character, escape(character), escape(character, quote=False), quote(character, safe="")))
    return "|".join(map(re.escape, forms)) if len(forms) == 1 else f"(?:{'|'.join(map(re.escape, forms))})"


def _check_https(address: str) -> str:
    """Accept an empty address, an https one, or a plain http one of this machine; raise ValueError otherwise."""
    url = urlsplit(address)
    is_local = url.scheme == "http" and url.hostname in ("127.0.0.1", "localhost")
    if address and not is_local and (url.scheme != "https" or not url.hostname):
        raise ValueError("must be an https:// address")
    return address


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings from the environment; raise RequestError that names a wrong variable, never its value."""
    folder = os.environ.get("MERGEPLAN_SECRETS_DIR")
    if folder and not Path(folder).is_dir():
        raise RequestError(f"MERGEPLAN_SECRETS_DIR is not usable: `{folder}` is no folder.")
    if folder:
        check_secret_files(Path(folder), Settings.model_fields.keys(), os.environ)
    try:
        return Settings(**{**(overrides or {}), "_secrets_dir": folder or None})
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        name = "_".join(str(part) for part in first["loc"][:1]).upper() or "GITHUB_PRIVATE_KEY_PATH"
        raise RequestError(f"MERGEPLAN_{name} is not usable: {validation_text(first)}.") from None
    except SettingsError as error:  # it names the field, and never the value
        name = next((field for field in Settings.model_fields if f'"{field}"' in str(error)), "").upper()
        raise RequestError(
            f"MERGEPLAN_{name} is not usable: it must be a list in JSON.", hint='Write it as `["ONE", "TWO"]`.'
        ) from None
    except OSError as error:
        raise RequestError(f"MERGEPLAN_GITHUB_PRIVATE_KEY_PATH cannot be read: {error.strerror}.") from None


def check_for_service(settings: Settings) -> None:
    """Raise RequestError if a secret is missing without which no service may start."""
    if not settings.webhook_secret.get_secret_value().strip():
        raise RequestError(
            "MERGEPLAN_WEBHOOK_SECRET is empty: anybody could send webhooks.",
            hint="Set it to the secret of the GitHub App's webhook.",
        )
    check_for_github(settings)


def check_for_github(settings: Settings) -> Settings:
    """Return the settings if they can log in to GitHub, by a token or an App's id and key; raise RequestError."""
    if settings.is_app and not settings.github_private_key.get_secret_value().strip():
        raise RequestError(
            "MERGEPLAN_GITHUB_APP_ID is set but the private key is empty.", hint="Set MERGEPLAN_GITHUB_PRIVATE_KEY."
        )
    if settings.is_app and not _is_key(settings.github_private_key.get_secret_value()):
        raise RequestError(
            "The App's private key is not a whole PEM file.",
            hint="Set MERGEPLAN_GITHUB_PRIVATE_KEY_PATH to the .pem file that GitHub gave; or "
            "MERGEPLAN_GITHUB_PRIVATE_KEY to its text, with its line breaks.",
        )
    if not settings.is_app and not settings.github_token.get_secret_value().strip():
        raise RequestError(
            "The bot cannot log in to GitHub.",
            hint="Set MERGEPLAN_GITHUB_APP_ID and MERGEPLAN_GITHUB_PRIVATE_KEY, or MERGEPLAN_GITHUB_TOKEN.",
        )
    return settings


def _is_key(text: str) -> bool:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True
