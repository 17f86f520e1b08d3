"""What the operator says, and what the base branch says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from mergeplan.bot.child.code_reading import read_code_section
from mergeplan.bot.child.planner_process import child_environment, stdin_secrets
from mergeplan.bot.cicd_section import read_section
from mergeplan.bot.rules import BotConfig, config_of
from mergeplan.bot.settings import Settings, check_for_service, load_settings
from mergeplan.planner.errors import ProjectError, RequestError


def test_an_empty_webhook_secret_is_refused_at_start() -> None:
    """Behaviour 1."""
    with pytest.raises(RequestError, match="MERGEPLAN_WEBHOOK_SECRET is empty"):
        check_for_service(Settings(webhook_secret=SecretStr("  "), github_token=SecretStr("token")))


@pytest.mark.parametrize("key", ["app.pem", "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----"])
def test_a_private_key_that_is_none_is_refused_at_start(key: str) -> None:
    settings = Settings(webhook_secret=SecretStr("s"), github_app_id=7, github_private_key=SecretStr(key))
    with pytest.raises(RequestError, match="not a whole PEM file") as refused:
        check_for_service(settings)
    assert key not in f"{refused.value} {refused.value.hint}"


def test_a_wrong_variable_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behaviour 8: a value may be a secret."""
    monkeypatch.setenv("MERGEPLAN_PORT", "s3cret")

    with pytest.raises(RequestError, match=r"MERGEPLAN_PORT is not usable: must be a whole number\.$") as caught:
        load_settings()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("REPOSITORIES", "shop"), ("GITHUB_API_URL", "github.example.com")])
def test_an_address_that_is_none_is_refused_at_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service began, and tried again and again."""
    monkeypatch.setenv(f"MERGEPLAN_{name}", value)

    with pytest.raises(RequestError, match=f"MERGEPLAN_{name} is not usable: "):
        load_settings()


def test_secrets_are_read_from_files_and_the_environment_goes_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mergeplan_webhook_secret").write_text("from-a-file\n")
    (tmp_path / "mergeplan_state_url").write_text("postgresql://ann:s3cret@db/shop\n")
    monkeypatch.setenv("MERGEPLAN_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("MERGEPLAN_STATE_URL", "sqlite:///here.db")

    settings = load_settings()

    assert settings.webhook_secret.get_secret_value() == "from-a-file"
    assert settings.database_url == "sqlite:///here.db"
    assert tmp_path.resolve() in settings.secret_paths()


def test_a_folder_of_secrets_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_SECRETS_DIR", str(tmp_path / "nowhere"))

    with pytest.raises(RequestError, match=r"MERGEPLAN_SECRETS_DIR is not usable: .* is no folder"):
        load_settings()


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no text": (lambda file: file.write_bytes(b"\xff\xfes3cret"), "is not UTF-8 text"),
    "a mark that nobody sees": (lambda file: file.write_bytes(b"\xef\xbb\xbfs3cret"), "a byte order mark"),
    "a folder": (lambda file: file.mkdir(), "cannot be read: Is a directory"),
    "a link to nowhere": (lambda file: file.symlink_to("nowhere"), "cannot be read: No such file"),
    "a link to elsewhere": (lambda file: file.symlink_to("/etc/hostname"), "a file outside of the folder"),
    "another name": (lambda file: file.with_name("mergeplan_webhok_secret").write_text("s3cret"), "of no variable"),
    "two of one name": (
        lambda file: (file.write_text("s3cret"), file.with_name(file.name.upper()).write_text("s3cret")),
        "are one variable",
    ),
}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_a_file_that_is_no_secret_is_named_without_what_it_holds(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, message = BAD_FILES[bad]
    make(tmp_path / "mergeplan_webhook_secret")
    monkeypatch.setenv("MERGEPLAN_SECRETS_DIR", str(tmp_path))

    with pytest.raises(RequestError, match=message) as caught:
        load_settings()
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"


def test_an_empty_variable_does_not_hide_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service would begin with an empty state in a file of its own."""
    (tmp_path / "mergeplan_state_url").write_text("postgresql://ann:s3cret@db/shop\n")
    monkeypatch.setenv("MERGEPLAN_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("MERGEPLAN_STATE_URL", "")

    with pytest.raises(RequestError, match="MERGEPLAN_STATE_URL is empty in the environment"):
        load_settings()


def test_secrets_do_not_print() -> None:
    """Behaviour 8: not in a traceback's locals either."""
    settings = Settings(webhook_secret=SecretStr("s3cret"), state_url=SecretStr("postgresql://u:pass%20w0rd@h/d"))

    assert "s3cret" not in repr(settings)
    assert "w0rd" not in repr(settings)
    assert {"s3cret", "pass%20w0rd", "pass w0rd"} <= set(settings.secrets())


def test_the_projects_rules_are_read() -> None:
    """The keys that mergeplan heeds."""
    text = (
        "cicd_bot:\n  type: github\n  prod_branch_name: live\n  pr_environment_name: Review\n  merge_method: squash\n"
    )
    config = read_config(text, "config.yaml", "main")

    assert (config.prod_branch, config.environment(7)) == ("live", "review_7")
    assert (config.permissions["rollback"], config.merge_method) == ("maintain", "squash")
    assert not config.enable_deploy_command


def read_config(text: str, path: str, branch: str) -> BotConfig:
    code = path.endswith(".py")
    return config_of(read_code_section(path, text, Path(__file__).parent) if code else read_section(path, text), branch)


def test_a_rule_that_is_spelled_otherwise_is_the_same_rule() -> None:
    """An edit that changes no rule asks for no review of the rules."""
    plain = read_config("cicd_bot: {data_diff: counts, command_namespace: Shop}\n", "config.yaml", "main")
    other = "cicd_bot: {data_diff: {'*': counts}, command_namespace: '#shop', production_branch_name: main, budget: {},"
    more = "  skip_pr_backfill: false, permissions: {plan: write}}\n"

    assert read_config(f"{other}\n{more}", "config.yaml", "main") == plain


CODE = """import os
from sqlmesh.core.config import Config, GatewayConfig, SparkConnectionConfig
from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig as Bot, MergeMethod

spark = SparkConnectionConfig(config={"spark.password": os.environ["NOBODY_SETS_THIS"]})
config = Config(
    gateways={"spark": GatewayConfig(connection=spark)},
    cicd_bot=Bot(
        merge_method=MergeMethod.SQUASH, enable_deploy_command=True,
        prod_branch_name="live",
    ),
)
"""


def test_the_rules_of_a_config_py_are_read_without_its_environment() -> None:
    config = read_config(CODE, "etl/config.py", "main")

    assert (config.prod_branch, config.merge_method, config.enable_deploy_command) == ("live", "squash", True)
    assert read_config(CODE.replace("cicd_bot=", "plan="), "config.py", "main").prod_branch == "main"


@pytest.mark.parametrize(
    ("old", "new", "said", "line"),
    [
        ("prod_branch_name", "typo", "`cicd_bot.typo` is not a key", 10),
        ('"live"', 'os.getenv("BRANCH")', "`cicd_bot` cannot use environment variables.", 10),
        ('"live"', 'os.environ["BRANCH"]', "`cicd_bot` cannot use environment variables.", 10),
        ('"live"', "branch()", "NameError: name 'branch' is not defined.", 10),
        ('"live"', '"a" if os.environ["BRANCH"] else "b"', "The environment variable `BRANCH` is not set.", 10),
        ('{"spark": Gate', '{**more(), "spark": Gate', "NameError: name 'more' is not defined.", 7),
    ],
)
def test_a_wrong_rule_of_a_config_py_is_named_with_its_line(old: str, new: str, said: str, line: int) -> None:
    with pytest.raises(ProjectError) as caught:
        read_config(CODE.replace(old, new), "etl/config.py", "main")

    assert said in caught.value.message
    assert str(caught.value.place) == f"etl/config.py:{line}"


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("cicd_bot:\n  pr_environment_name: a b\n", "cannot name an environment", 2),
        ("cicd_bot:\n  permissions:\n    rollback: god\n", "`cicd_bot.permissions.rollback` is wrong", 3),
        ("cicd_bot:\n  type: github\n  default_pr_start: 1 mnth ago\n", "`1 mnth ago` is not a date", 3),
        ("cicd_bot:\n  - type: github\n", "`cicd_bot` is wrong: must be a mapping", 1),
        ("cicd_bot:\n  merge_method: merg\n", "is wrong: must be 'merge', 'squash' or 'rebase'.", 2),
        ("cicd_bot:\n  rules: [{approvers: [a b]}]\n", "a login, or a team", 2),
        ("cicd_bot:\n  rules: [{block: [braking]}]\n", "it is one of added, removed, breaking", 2),
        ("cicd_bot:\n  rules: [{freeze: [{cron: '0 16 * * 5'}]}]\n", "needs `hours`", 2),
        ("cicd_bot:\n  rules: [{freeze: [{start: 2026-12-20, end: 2026-12-20}]}]\n", "`start` must be before", 2),
        ("cicd_bot:\n  rules: [{freeze: [{start: 2026-12-20, end: 2027-01-01, zone: Mars}]}]\n", "no time zone", 2),
        ("cicd_bot: [\n", "is not closed", 1),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(text: str, said: str, line: int) -> None:
    """A key that is not known is never silently ignored."""
    with pytest.raises(ProjectError) as caught:
        read_config(text, "config.yaml", "main")

    assert said in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.line == line


def test_the_planner_reads_secrets_from_standard_input_and_its_environment_holds_none() -> None:
    settings = Settings(state_url=SecretStr("sqlite:///x"), openlineage_api_key=SecretStr("s3cret"))

    child = child_environment(settings, "ann/shop", {"MERGEPLAN_OPENLINEAGE_API_KEY": "s3cret", "PATH": "/bin"})

    assert child["MERGEPLAN_STATE_URL"] == child["MERGEPLAN_OPENLINEAGE_API_KEY"] == "-"
    assert "s3cret" not in child.values()
    assert list(stdin_secrets(settings).values()) == ["sqlite:///x", "s3cret"]


def test_what_is_told_of_rows_is_a_word_or_a_rule_by_model() -> None:
    """Behaviour 15: counts unless the base branch says otherwise; YAML's `off` is a word here."""
    rules = "cicd_bot:\n  data_diff: {shop.*: sample, 'tag:pii': off}\n  data_diff_unmasked: [id]\n"
    of = lambda text: read_config(text, "config.yaml", "main").diff  # noqa: E731

    assert of("").detail == of("cicd_bot: {}\n").detail == (("*", "counts"),)
    assert of("cicd_bot:\n  data_diff: off\n").is_off
    assert of(rules).detail == (("*", "counts"), ("shop.*", "sample"), ("tag:pii", "off"))
    assert of(rules).without_samples().detail == (("*", "counts"), ("shop.*", "counts"), ("tag:pii", "off"))
    assert of(rules).unmasked == ("id",)
    with pytest.raises(ProjectError, match=r"cicd_bot\.data_diff"):
        of("cicd_bot:\n  data_diff: everything\n")


def test_a_list_that_is_no_json_is_an_error_that_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_PLANNER_ENVIRONMENT", "SPARK_TOKEN,s3cret")
    with pytest.raises(RequestError, match=r"MERGEPLAN_PLANNER_ENVIRONMENT is not usable: .* JSON") as refused:
        load_settings()
    assert "s3cret" not in str(refused.value)
