"""How the replicas that ended a job are described."""

from typing import Any

import pytest

from app.domain.plan import Rank
from app.domain.status.failures import list_failures, summarize_failures
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import NO_FAILURES, FailureSummary
from app.domain.vocabulary import Outcome
from tests.support.plans import at, ended


def summary(*ends: dict[str, Any]) -> FailureSummary:
    return summarize_failures(
        ended(Rank("w", rank), end.get("outcome", Outcome.FAILED), how=end) for rank, end in enumerate(ends)
    )


def tell(*ends: dict[str, Any]) -> str:
    return list_failures(summary(*ends), lambda key: f"{key.task}-{key.rank}")


@pytest.mark.parametrize(
    ("end", "description"),
    [
        (
            {"exit_code": 1, "reason": "Error", "node": "n1", "message": "KeyError: 1"},
            "w-0 failed in attempt 1 on node n1 (exit code 1, Error): KeyError: 1",
        ),
        ({"exit_code": 1, "last_lines": ("a", " b")}, "w-0 failed in attempt 1 (exit code 1): b"),
        (
            {"exit_code": 1, "message": "Traceback:\n  File\nIndexError\n"},
            "w-0 failed in attempt 1 (exit code 1): IndexError",
        ),
        (
            {"exit_code": 137, "reason": "OOMKilled", "message": "\n"},
            "w-0 failed in attempt 1 (exit code 137, OOMKilled)",
        ),
        ({"reason": "R" * 100}, f"w-0 failed in attempt 1 ({'R' * 100})"),
        ({"reason": "R" * 101}, f"w-0 failed in attempt 1 ({'R' * 99}…)"),
        ({}, "w-0 failed in attempt 1"),
        (
            {"outcome": Outcome.DISRUPTED, "reason": "Evicted", "message": "low on memory"},
            "w-0 was taken away in attempt 1 (Evicted): low on memory",
        ),
    ],
)
def test_a_failure_is_described_by_attempt_node_exit_code_and_last_line(end: dict[str, Any], description: str) -> None:
    assert tell(end) == description


def test_an_attempt_of_an_older_version_has_the_signal_of_the_container_with_its_exit_code() -> None:
    """Such an attempt does not name the container that failed."""
    stopped = ObservedContainer(name="sidecar", state="terminated", exit_code=143, signal=15)
    killed = ObservedContainer(name="main", state="terminated", exit_code=137, signal=9)
    (failure,) = summary({"exit_code": 137, "containers": (stopped, killed)}).first
    assert failure.signal == 9


def test_a_long_line_is_cut() -> None:
    description = tell({"message": "x" * 9_999 + ": no such file"})
    assert len(description) < 500
    assert description.endswith("x: no such file")


def test_only_the_first_five_failures_are_listed() -> None:
    many = summary(*[{}] * 5, {"outcome": Outcome.DISRUPTED}, {})
    assert (many.failed, many.disrupted) == (6, 1)
    description = list_failures(many, lambda key: f"{key.task}-{key.rank}")
    assert description == "; ".join([f"w-{rank} failed in attempt 1" for rank in range(5)] + ["and 2 more"])


def test_the_earliest_failure_is_listed_first() -> None:
    found = summary({"finished_at": at(9)}, {}, {"finished_at": at(7)})
    assert [failure.key.rank for failure in found.first] == [2, 0, 1]


def test_replicas_that_succeeded_or_will_be_restarted_are_no_failures() -> None:
    done = ended(Rank("w", 0), Outcome.SUCCEEDED)
    coming_back = ended(Rank("w", 1), Outcome.FAILED, settled=False)
    assert summarize_failures([done, coming_back]) == NO_FAILURES


def test_a_summary_without_failures_has_no_text() -> None:
    assert tell() == ""
