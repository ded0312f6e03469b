"""Failures of replicas as values that outlast a restart, and the sentences that describe them."""

from collections.abc import Callable, Iterable, Mapping

from app.domain.errors import shorten
from app.domain.plan import Rank
from app.domain.reconcile.lifecycle import has_failed, was_stopped
from app.domain.status.records import Attempt, FailureSummary, Replica, ReplicaFailure
from app.domain.vocabulary import Outcome, ReplicaPhase

LISTED_FAILURES = 5  # enough to see a pattern; the status of a large job stays small
LOST = (Outcome.FAILED, Outcome.DISRUPTED)


def failure_of(key: Rank, attempt: Attempt) -> ReplicaFailure:
    """Return the failure of an attempt. Its message may be the end of a log, so only the last line is kept."""
    lines = (attempt.message or "").strip().splitlines()
    return ReplicaFailure(
        key=key,
        attempt=attempt.number,
        outcome=attempt.outcome or Outcome.FAILED,
        exit_code=attempt.exit_code,
        reason=attempt.reason,
        message=shorten(lines[-1]) if lines else "",
        node=attempt.node,
    )


def describe(subject: str, failure: ReplicaFailure) -> str:
    """Return a sentence about a failure, such as `worker[0] failed (exit code 127, StartError): no such file`."""
    how = "was taken away" if failure.outcome is Outcome.DISRUPTED else "failed"
    code = [] if failure.exit_code is None else [f"exit code {failure.exit_code}"]
    facts = ", ".join(code + ([failure.reason] if failure.reason else []))
    message = [failure.message] if failure.message else []
    return ": ".join([f"{subject} {how}" + (f" ({facts})" if facts else ""), *message])


def summarize_failures(replicas: Iterable[Replica]) -> FailureSummary:
    """Return a summary of the replicas that have failed for good, in the given order."""
    failed = [replica for replica in replicas if has_failed(replica)]
    disrupted = sum(replica.attempt.outcome is Outcome.DISRUPTED for replica in failed)
    first = tuple(failure_of(replica.key, replica.attempt) for replica in failed[:LISTED_FAILURES])
    return FailureSummary(first=first, failed=len(failed) - disrupted, disrupted=disrupted)


def crashed_replicas(
    replicas: Mapping[Rank, Replica], former: Mapping[Rank, Attempt], known: Iterable[ReplicaFailure]
) -> dict[Rank, ReplicaFailure]:
    """Return the last failure of each replica that is being restarted and does not run yet.

    `former` are the attempts that this reconcile replaced, `known` the failures that the previous reconcile found.
    """
    before = {failure.key: failure for failure in known}
    found: dict[Rank, ReplicaFailure] = {}
    for key, replica in replicas.items():
        attempt = replica.attempt
        if attempt.outcome is None:
            failure = _before_this_attempt(replica, former.get(key), before.get(key))
        else:
            failure = failure_of(key, attempt) if _counts(attempt) and not replica.settled else None
        if failure is not None:
            found[key] = failure
    return found


def _before_this_attempt(
    replica: Replica, former: Attempt | None, known: ReplicaFailure | None
) -> ReplicaFailure | None:
    if replica.phase not in (ReplicaPhase.CREATING, ReplicaPhase.PENDING):
        return None
    if former is not None:
        return failure_of(replica.key, former) if _counts(former) else None
    return known if known is not None and known.attempt == replica.attempt.number - 1 else None


def _counts(attempt: Attempt) -> bool:
    return attempt.outcome in LOST and not was_stopped(attempt)


def list_failures(summary: FailureSummary, pod_name: Callable[[Rank], str]) -> str:
    """Return the failures of a summary with the names of their pods, and the number of failures that it omits."""
    described = [describe(pod_name(failure.key), failure) for failure in summary.first]
    return "; ".join(described + omitted_failures(summary))


def omitted_failures(summary: FailureSummary) -> list[str]:
    """Return a phrase with the number of failures that the summary omits, such as `and 3 more`; [] if it omits none."""
    count = summary.failed + summary.disrupted - len(summary.first)
    return [f"and {count} more"] if count > 0 else []
