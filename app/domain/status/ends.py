"""What the end of an attempt means for its replica."""

from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import Outcome


def was_stopped(attempt: Attempt) -> bool:
    """Return whether jobgate stopped the attempt, so that no rule and no limit counts its end."""
    return attempt.outcome is Outcome.STOPPED or attempt.stopping is not None


def is_loss(attempt: Attempt) -> bool:
    """Return whether the attempt failed or was disrupted, and jobgate had not stopped it."""
    return attempt.outcome in (Outcome.FAILED, Outcome.DISRUPTED) and not was_stopped(attempt)


def has_failed(replica: Replica) -> bool:
    """Return whether the replica has failed for good: no restart is left."""
    return replica.settled and replica.attempt.outcome in (Outcome.FAILED, Outcome.DISRUPTED)


def has_succeeded(replica: Replica) -> bool:
    return replica.settled and replica.attempt.outcome is Outcome.SUCCEEDED
