"""Whether the mirror of the cluster is current, judged by the time since the last proof of contact.

probe ─▶ the API server answers a read that etcd must confirm        a frozen or cut-off server answers none
watch ─▶ opened, an event or a bookmark came                         a half-open connection brings none
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.loops.failure_log import FailureLog


@dataclass(slots=True)
class ClusterContact:
    """The last proofs of contact. A watch without news for `limit` is stale, an unanswered probe after half of it.

    `failures` logs the errors of probes and watches.
    """

    limit: timedelta
    answered_at: datetime
    error: str = ""  # of the last probe, if it failed
    failures: FailureLog = field(default_factory=FailureLog)

    def record_probe(self, now: datetime, error: str = "") -> None:
        """Record the outcome of a probe."""
        self.error = error
        if not error:
            self.answered_at = now

    def silence(self, now: datetime, watched_at: datetime, watch_error: str) -> str | None:
        """Return why the mirror is stale, or None while it is current."""
        unanswered, unwatched = now - self.answered_at, now - watched_at
        # Three probes without an answer: one is sent in each sixth of the limit.
        if unanswered > self.limit / 2:
            return (
                f"the API server has not answered for {unanswered.total_seconds():.0f} s: {self.error or 'no answer'}"
            )
        if unwatched > self.limit:
            return f"no watch has sent anything for {unwatched.total_seconds():.0f} s: {watch_error or 'no event'}"
        return None
