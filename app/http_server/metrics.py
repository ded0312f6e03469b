"""What the server counts, in prometheus' own registry."""

from typing import Final

from prometheus_client import Counter, Gauge

CONNECTIONS: Final = Gauge("jobgate_http_connections", "Open connections of clients.")
REFUSALS: Final = Counter(
    "jobgate_http_refusals_total",
    "Connections and requests that the server refused or ended, by reason.",
    ("reason",),
)
