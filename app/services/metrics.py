"""The metrics of the services of a process."""

from typing import Final

from prometheus_client import Counter, Gauge

from app.base.instruments import ComputedMetric

WAITING: Final = Gauge("jobgate_waiting_requests", "Requests that wait for their turn.", ("work",))
OVERLOAD_REFUSALS: Final = Counter(
    "jobgate_overload_refusals_total", "Requests refused: too many waited, or for too long.", ("work",)
)
LONG_REQUESTS: Final = ComputedMetric(
    "gauge", "jobgate_long_requests", "Open long-running requests by kind: stream, poll, log or csv.", ("kind",)
)
FOLLOWED: Final = ComputedMetric(
    "gauge", "jobgate_feed_follower_position", "Number of the last feed entry that this process has read."
)
