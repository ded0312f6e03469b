"""Failures of replicas as values that outlast a restart, and the sentences that describe them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from app.domain.plan import Rank
from app.domain.status.ends import has_failed, is_loss
from app.domain.status.log_lines import MAX_LINES, last_line, one_line
from app.domain.status.observed import ObservedContainer
from app.domain.status.pods.containers import exit_message, failed_init_container
from app.domain.status.records import Attempt, FailureSummary, Replica, ReplicaFailure
from app.domain.vocabulary import Outcome, ReplicaPhase

LISTED_FAILURES = 5  # enough to see a pattern; the status of a large job stays small
_MAX_REASON: Final = 100
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def failure_of(key: Rank, attempt: Attempt, *, lines: int = 1) -> ReplicaFailure:
    """Return the failure of an attempt, with at most `lines` lines of its log.

    Its message may be the end of a log, so only the last line is kept.
    """
    known = attempt.last_lines
    init = failed_init_container(attempt.containers)
    failed = next((container for container in attempt.containers if container.culprit), None)
    return ReplicaFailure(
        key=key,
        attempt=attempt.number,
        outcome=attempt.outcome or Outcome.FAILED,
        exit_code=attempt.exit_code,
        reason=one_line(attempt.reason, _MAX_REASON) if attempt.reason else None,
        message=_last_report(attempt),
        node=attempt.node,
        signal=_signal(attempt, failed),
        container=failed.name if failed is not None else None,
        is_default=failed is None or failed.default,
        init_container=init.name if init is not None else None,
        last_lines=None if known is None else known[-lines:],
        at=attempt.finished_at,
    )


def _signal(attempt: Attempt, failed: ObservedContainer | None) -> int | None:
    """Return the signal that ended the container that failed. Attempts of older versions do not name that one."""
    ended = [failed] if failed is not None else attempt.containers
    return next(
        (container.signal for container in ended if container.exit_code and container.exit_code == attempt.exit_code),
        None,
    )


def _last_report(attempt: Attempt) -> str:
    """Return the last line of what the cluster reported; empty if it reported no more than the exit code."""
    message = (attempt.message or "").strip()
    return "" if message in map(exit_message, attempt.containers) else last_line(message)


def describe(subject: str, failure: ReplicaFailure) -> str:
    """Return a sentence about a failure, such as `worker[0] failed (exit code 127, StartError): no such file`.

    It ends with the message that the container left, or else with the last line of its log.
    """
    how = "was taken away" if failure.outcome is Outcome.DISRUPTED else "failed"
    return with_details(f"{subject} {how}", failure)


def cause_of(failure: ReplicaFailure, subject: str = "") -> str:
    """Return the sentence about a failure that also names attempt and node. By default its subject is the replica."""
    how = "was taken away" if failure.outcome is Outcome.DISRUPTED else "failed"
    where = f"{subject or failure.key} {how} in attempt {failure.attempt}"
    return with_details(where + (f" on node {failure.node}" if failure.node else ""), failure)


def with_details(beginning: str, failure: ReplicaFailure) -> str:
    """Return the beginning of a sentence with the exit code, the reason and the last words of a failure."""
    known = _facts(failure)
    said = failure.message or (failure.last_lines[-1].strip() if failure.last_lines else "")
    return beginning + (f" ({known})" if known else "") + (f": {said}" if said else "")


def _facts(failure: ReplicaFailure) -> str:
    """Return the exit code and the reason of a failure, as far as they are known: `exit code 137, OOMKilled`.

    An init container that failed is named before them, and so is a container whose log is not shown by default.
    """
    if failure.init_container:
        known = [f"init container {failure.init_container}"]
    else:
        known = [] if failure.is_default else [f"container {failure.container}"]
    known += [] if failure.exit_code is None else [f"exit code {failure.exit_code}"]
    return ", ".join(known + ([failure.reason] if failure.reason else []))


def earliest_failure(replicas: Iterable[Replica]) -> Replica | None:
    """Return the replica that failed for good first: the likely cause, since others often fail as a consequence."""
    return min(filter(has_failed, replicas), key=_ended_at, default=None)


def first_failure(
    known: ReplicaFailure | None, replicas: Mapping[Rank, Replica], now: datetime, *, ended: bool
) -> ReplicaFailure | None:
    """Return the first failure of a job: the known one, or else the earliest one that the history does not have yet.

    A disruption counts if no attempt follows it. A replica that leaves does not count, and a job that had `ended`
    before has no new first failure. The lines of the log of the known one are added when they are stored.
    """
    if known is None:
        new = [replica for replica in replicas.values() if replica.unreported and not replica.leaving]
        first = min(
            (replica for replica in new if _has_crashed(replica) or has_failed(replica)), key=_ended_at, default=None
        )
        return None if first is None or ended else _whole_failure(first, now)
    replica = replicas.get(known.key)
    if replica is None or replica.attempt.number != known.attempt:
        return known
    return replace(known, last_lines=replica.attempt.last_lines)


def _whole_failure(replica: Replica, now: datetime) -> ReplicaFailure:
    failure = failure_of(replica.key, replica.attempt, lines=MAX_LINES)
    return replace(failure, at=failure.at or now)


def _has_crashed(replica: Replica) -> bool:
    return replica.attempt.outcome is Outcome.FAILED


def _ended_at(replica: Replica) -> datetime:
    return replica.attempt.finished_at or _NEVER


def summarize_failures(replicas: Iterable[Replica]) -> FailureSummary:
    """Return a summary of the replicas that have failed for good, the earliest failure first."""
    failed = sorted(filter(has_failed, replicas), key=_ended_at)
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
            failure = failure_of(key, attempt) if is_loss(attempt) and not replica.settled else None
        if failure is not None:
            found[key] = failure
    return found


def _before_this_attempt(
    replica: Replica, former: Attempt | None, known: ReplicaFailure | None
) -> ReplicaFailure | None:
    if replica.phase not in (ReplicaPhase.CREATING, ReplicaPhase.PENDING):
        return None
    if former is not None:
        return failure_of(replica.key, former) if is_loss(former) else None
    return known if known is not None and known.attempt == replica.attempt.number - 1 else None


def list_failures(summary: FailureSummary, pod_name: Callable[[Rank], str]) -> str:
    """Return the failures of a summary with the names of their pods, and the number of failures that it omits."""
    described = [cause_of(failure, pod_name(failure.key)) for failure in summary.first]
    return "; ".join(described + omitted_failures(summary))


def omitted_failures(summary: FailureSummary) -> list[str]:
    """Return a phrase with the number of failures that the summary omits, such as `and 3 more`; [] if it omits none."""
    count = summary.failed + summary.disrupted - len(summary.first)
    return [f"and {count} more"] if count > 0 else []
