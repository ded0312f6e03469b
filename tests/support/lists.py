"""Lowers the bounds of lists, so that a few rows show what a list does with many."""

import pytest

from app.db.lists import statements


def examine_few(monkeypatch: pytest.MonkeyPatch, rows: int, *, first: int) -> None:
    """Let a page of a list examine at most this number of rows, and `first` of them before it tries other indexes."""
    monkeypatch.setattr(statements, "EXAMINED", rows)
    monkeypatch.setattr(statements, "FOUND", rows)
    monkeypatch.setattr(statements, "SAMPLED", rows)
    monkeypatch.setattr(statements, "EXAMINED_FIRST", first)
