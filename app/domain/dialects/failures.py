"""Which replicas ended a job, and how, in a sentence for its native status."""

from collections.abc import Callable

from app.domain.plan import Rank
from app.domain.status.failures import describe
from app.domain.status.records import FailureSummary


def tell_failures(summary: FailureSummary, pod_name: Callable[[Rank], str]) -> str:
    """The listed failures under the names of their pods, and how many more there are."""
    told = [describe(pod_name(failure.key), failure) for failure in summary.first]
    return "; ".join(told + more(summary))


def more(summary: FailureSummary) -> list[str]:
    """The words for the failures that the summary counts and does not list, if there are any."""
    count = summary.failed + summary.disrupted - len(summary.first)
    return [f"and {count} more"] if count > 0 else []
