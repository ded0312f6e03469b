"""The metrics of the services of a process."""

from typing import Final

from prometheus_client import Counter, Gauge

WAITING: Final = Gauge("jobgate_waiting_requests", "Requests that wait for their turn.", ("work",))
OVERLOAD_REFUSALS: Final = Counter(
    "jobgate_overload_refusals_total", "Requests refused: too many waited, or for too long.", ("work",)
)
