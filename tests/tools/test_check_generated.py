"""`make check` finds files without git, and checks every lock file."""

from pathlib import Path

import pytest

from tools.generators.check_generated import ROOT, tracked
from tools.lock import GROUPS, LOCKS


def test_files_are_found_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = set(tracked("*.md"))
    assert ROOT / "README.md" in known
    monkeypatch.setenv("PATH", str(tmp_path))
    assert known <= set(tracked("*.md"))


def test_every_lock_file_is_checked() -> None:
    assert {path.name for path in LOCKS.iterdir()} == set(GROUPS)
