"""What is told of replicas that ended a job."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.dialects.failures import tell_failures
from app.domain.status.records import Attempt
from app.domain.vocabulary import Outcome, ReplicaPhase

FAILED = Attempt(number=1, phase=ReplicaPhase.FAILED, outcome=Outcome.FAILED)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ({"exit_code": 1, "reason": "Error", "message": "KeyError: 1"}, "w-0 failed (exit code 1, Error): KeyError: 1"),
        ({"exit_code": 1, "message": "Traceback:\n  File\nIndexError\n"}, "w-0 failed (exit code 1): IndexError"),
        ({"exit_code": 137, "reason": "OOMKilled", "message": "\n"}, "w-0 failed (exit code 137, OOMKilled)"),
        ({}, "w-0 failed"),
        (
            {"outcome": Outcome.DISRUPTED, "reason": "Evicted", "message": "low on memory"},
            "w-0 was taken away (Evicted): low on memory",
        ),
    ],
)
def test_a_failure_is_told_with_its_exit_and_the_last_line(end: dict[str, Any], told: str) -> None:
    assert tell_failures({"w-0": replace(FAILED, **end)}) == told


def test_a_long_line_is_cut() -> None:
    told = tell_failures({"w-0": replace(FAILED, message="x" * 9_999)})
    assert len(told) < 500
    assert told.endswith("\N{HORIZONTAL ELLIPSIS}")


def test_of_many_the_first_five_are_named() -> None:
    told = tell_failures({f"w-{rank}": FAILED for rank in range(7)})
    assert told == "w-0 failed; w-1 failed; w-2 failed; w-3 failed; w-4 failed; and 2 more"


def test_nobody_is_told_of_where_nobody_failed() -> None:
    assert tell_failures({}) == ""
