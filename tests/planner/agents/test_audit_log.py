"""The audit log: private, bounded, without secrets; and a call that cannot be logged is not answered."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from mergeplan.planner.agents import audit_log
from mergeplan.planner.agents.audit_log import AuditEntry, AuditLog
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.agents.sessions import call_each, converse_inside, message
from tests.planner.shop import write_shop

SECRET = "s3cret-of-the-server"  # noqa: S105 - it must not be written


def test_a_line_has_the_call_and_no_secret(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "agents", [SECRET, ""])
    arguments = {
        "text": f"x {SECRET} postgresql://ann:pw@host/db" + "y" * 1000,
        "names": ["password=hunter2 z"],
        "n": 1,
    }
    log.write(AuditEntry("local", "impact", arguments, "allow", f"failed: {SECRET}"))
    text = log.path.read_text()
    row = json.loads(text)

    assert not [word for word in (SECRET, "ann:pw", "hunter2") if word in text]
    assert (row["principal"], row["tool"], row["decision"], row["arguments"]["n"]) == ("local", "impact", "allow", 1)
    assert row["arguments"]["text"].endswith("characters)") and len(text) < 1000
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700


def test_old_lines_are_put_aside_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "LARGEST", 2000)
    log = AuditLog(tmp_path)
    for number in range(100):
        log.write(AuditEntry("local", "models", {"number": number}, "allow", "done"))
    files = sorted(tmp_path.glob("audit*.jsonl"))

    assert [file.name for file in files] == ["audit.1.jsonl", "audit.2.jsonl", "audit.3.jsonl", "audit.jsonl"]
    assert all(file.stat().st_size <= 2000 for file in files)
    assert json.loads(log.path.read_text().splitlines()[-1])["arguments"] == {"number": 99}


def test_a_link_in_its_place_is_not_followed_and_nothing_is_answered(tmp_path: Path) -> None:
    write_shop(tmp_path / "shop")
    (tmp_path / "shop/.mergeplan/agents").mkdir(parents=True)
    (tmp_path / "shop/.mergeplan/agents/audit.jsonl").symlink_to(tmp_path / "elsewhere")
    calls = call_each((("make_plan", {"environment": "dev"}), ("models", {})))
    answers = converse_inside(SessionSettings(tmp_path / "shop"), calls)

    assert all("The audit log cannot be written" in message(answer) for answer in answers)
    assert not (tmp_path / "elsewhere").exists()
    assert not list((tmp_path / "shop/.mergeplan/agents").glob("jobs-*/2*"))


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.path.mkdir()

    with pytest.raises(RequestError, match="cannot be written"):
        log.write(AuditEntry("local", "models", {}, "allow", "done"))
