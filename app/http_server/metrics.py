"""Prometheus metrics of the server, in the default registry."""

from typing import Final

from prometheus_client import Counter, Gauge

CONNECTIONS: Final = Gauge("jobgate_http_connections", "Open connections of clients.")
REFUSALS: Final = Counter(
    "jobgate_http_refusals_total",
    "Connections and requests that the server refused or ended, by reason.",
    ("reason",),
)
STALLS: Final = Counter(
    "jobgate_loop_stalls_total",
    "Callbacks that held the event loop for longer than JOBGATE_MAX_STALL seconds of CPU time.",
)
