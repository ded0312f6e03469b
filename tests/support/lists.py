"""Lowers the bounds of lists, so that a few rows show what a list does with many."""

import pytest

from app.db import list_reading


def examine_few(monkeypatch: pytest.MonkeyPatch, rows: int, *, first: int) -> None:
    """Let a page of a list examine at most this number of rows, and `first` of them before it tries other indexes."""
    monkeypatch.setattr(list_reading, "EXAMINED", rows)
    monkeypatch.setattr(list_reading, "FOUND", rows)
    monkeypatch.setattr(list_reading, "SAMPLED", rows)
    monkeypatch.setattr(list_reading, "EXAMINED_FIRST", first)
