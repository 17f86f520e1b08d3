"""A unified diff as lines."""

from __future__ import annotations

from mergeplan.planner.site.diff_lines import diff_lines


def test_a_removed_comment_is_no_name_of_a_file() -> None:
    lines, _ = diff_lines("--- a/m.sql\n+++ b/m.sql\n@@ -1 +1 @@\n--- note\n+++ x", 1_000)

    assert [line.sort for line in lines] == ["file", "file", "at", "del", "add"]
