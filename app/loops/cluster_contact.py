"""Whether a mirror of the cluster is fresh, by the clock: how long ago there was proof of contact.

probe ─▶ the API server answers a read that etcd must confirm        a frozen or cut-off server answers none
watch ─▶ opened, an event or a bookmark came                         a half-open connection brings none
"""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(slots=True)
class ClusterContact:
    """Proofs of contact. `limit` is the age beyond which a watch is called silent; a probe has half of that."""

    limit: timedelta
    answered_at: datetime
    error: str = ""  # of the last probe, if it failed

    def probed(self, now: datetime, error: str = "") -> None:
        """Note the outcome of a probe."""
        self.error = error
        if not error:
            self.answered_at = now

    def silence(self, now: datetime, watched_at: datetime, watch_error: str) -> str | None:
        """Say why the mirror cannot be called fresh; None while it can."""
        unanswered, unwatched = now - self.answered_at, now - watched_at
        if unanswered > self.limit / 2:
            return (
                f"the API server has not answered for {unanswered.total_seconds():.0f} s: {self.error or 'no answer'}"
            )
        if unwatched > self.limit:
            return f"no watch has said anything for {unwatched.total_seconds():.0f} s: {watch_error or 'no event'}"
        return None
