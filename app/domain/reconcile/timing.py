"""The waiting times of an installation that reconcile uses. All are seconds."""

from dataclasses import dataclass
from datetime import timedelta

from app.base.backoff import ExponentialBackoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Delays and limits of restarts, in seconds. The back-off is that of a Kubernetes Job: 10 s, doubling to 6 min.

    `pending_deadline` is how long a job without its own annotation may wait in one stretch; None means no limit.
    `start_deadline` is how long a job may hold nodes while others of its replicas find none; None means no limit.
    `ttl_after_finished` is how long the objects of an ended job without its own annotation stay; None means for ever.
    `node_lost_after` of None forbids force-deleting a pod whose node is lost; the replica then stays unknown.
    """

    restart_backoff: float = 10.0
    restart_backoff_max: float = 360.0
    disruption_limit: int = 10
    pending_deadline: float | None = 86_400.0
    start_deadline: float | None = 600.0
    ttl_after_finished: float | None = 86_400.0
    node_lost_after: float | None = 300.0
    events_after: float = 5.0

    def backoff(self, earlier: int) -> timedelta:
        """Return the back-off after a failure, if `earlier` failures of the replica came before it."""
        return self._delay(earlier + 1)

    def disruption_backoff(self, earlier: int) -> timedelta:
        """Return the back-off after a disruption. The first is zero, because the replica did not fail."""
        return self._delay(earlier)

    def start_backoff(self, earlier: int, share: float) -> timedelta:
        """Return how long a job waits that has freed its nodes for the `earlier` + 1st time.

        `share` of the wait, from 0 to 1, is that of the job, so that jobs that compete do not start again together.
        """
        return self._delay(earlier + 1) * (0.5 + share)

    def _delay(self, failures: int) -> timedelta:
        return timedelta(seconds=ExponentialBackoff(self.restart_backoff, self.restart_backoff_max).delay(failures))
