"""What was read of a mirror is not read again, and what git itself is going to read always is."""

from __future__ import annotations

import shutil

import pytest

from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.git.objects import MEMORY_MOST, OBJECT_MOST, ObjectMemory


def test_a_text_that_was_read_starts_no_git_again(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    head = checkout.head("main")
    text = checkout.read(head, "a.sql")

    monkeypatch.setenv("PATH", "")  # git is nowhere

    assert text == checkout.read(head, "a.sql")
    assert checkout.read(head, "no/such/file") is None
    with pytest.raises((CheckoutFailed, OSError)):
        checkout.fetch("main")


def test_what_was_read_stays_what_it_is_when_the_mirror_is_gone(checkout: Checkout) -> None:
    head = checkout.head("main")
    text = checkout.read(head, "a.sql")
    shutil.rmtree(checkout.folder / "mirror.git")

    checkout.fetch("main")

    assert text == checkout.read(head, "a.sql")
    with checkout.files(head) as folder:
        assert (folder / "a.sql").read_text() == text


def test_the_memory_keeps_what_was_used_last() -> None:
    memory, content = ObjectMemory(), b"x" * OBJECT_MOST
    memory.put("huge", "blob", content + b"x")
    for number in range(MEMORY_MOST // OBJECT_MOST + 1):
        memory.put(str(number), "blob", content)
        memory.get("0", "blob")

    kept = [name for name in ("huge", "0", "1", "2") if memory.get(name, "blob")]

    assert kept == ["0", "2"]
