"""`make check` finds files without git."""

from pathlib import Path

import pytest

from tools.check_generated import ROOT, tracked


def test_files_are_found_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = set(tracked("*.md"))
    assert ROOT / "README.md" in known
    monkeypatch.setenv("PATH", str(tmp_path))
    assert known <= set(tracked("*.md"))
