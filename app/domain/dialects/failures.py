"""Sentences of native statuses about the replicas that ended a job."""

from collections.abc import Callable

from app.domain.plan import Rank
from app.domain.status.failures import describe
from app.domain.status.records import FailureSummary


def tell_failures(summary: FailureSummary, pod_name: Callable[[Rank], str]) -> str:
    """The listed failures with the names of their pods, and the number of further ones."""
    told = [describe(pod_name(failure.key), failure) for failure in summary.first]
    return "; ".join(told + more(summary))


def more(summary: FailureSummary) -> list[str]:
    """The number of failures that the summary does not list, in words; empty if it lists all."""
    count = summary.failed + summary.disrupted - len(summary.first)
    return [f"and {count} more"] if count > 0 else []
