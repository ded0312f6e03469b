"""Which log of a replica a request means that names no attempt."""

from collections.abc import Sequence

from app.domain.status.pods.containers import choose_container
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence


def default_attempt(attempts: Sequence[Attempt], container: str | None = None) -> Attempt:
    """Return the newest attempt that has a log, of this container if one is requested; else the newest attempt.

    The attempts are in the order of their numbers, and at least one.
    """
    return next((attempt for attempt in reversed(attempts) if has_log(attempt, container)), attempts[-1])


def has_log(attempt: Attempt, container: str | None = None) -> bool:
    """Return whether the log of a container of the attempt exists in the cluster or is stored, as far as is known."""
    found = choose_container(attempt.containers, container)
    return found is not None and found.has_run and attempt.evidence is not Evidence.UNAVAILABLE


def why_no_log(attempt: Attempt) -> str:
    """Return the reason why an attempt has no log."""
    if attempt.evidence is Evidence.UNAVAILABLE and attempt.evidence_reason:
        return f"attempt {attempt.number} has no log: {attempt.evidence_reason}"
    if attempt.outcome is not None:
        return f"attempt {attempt.number} ended before the container started: it has no log"
    return f"attempt {attempt.number} has not started: there is no log yet"
