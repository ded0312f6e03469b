"""Metrics of the connections to PostgreSQL, of the group commit and of the clocks."""

from typing import Final

from prometheus_client import Counter, Histogram

from app.base.instruments import SHORT_SECONDS, ComputedMetric

POOL_LIMIT: Final = ComputedMetric(
    "gauge", "jobgate_database_pool_max_connections", "Most connections of a pool to PostgreSQL.", ("pool",)
)
POOL_OPEN: Final = ComputedMetric(
    "gauge", "jobgate_database_pool_connections", "Open connections of a pool.", ("pool",)
)
POOL_IN_USE: Final = ComputedMetric(
    "gauge", "jobgate_database_pool_connections_in_use", "Connections of a pool that callers hold.", ("pool",)
)
POOL_WAITING: Final = ComputedMetric(
    "gauge", "jobgate_database_pool_waiting", "Callers that wait for a connection of a pool.", ("pool",)
)
COMMIT_JOBS: Final = Histogram(
    "jobgate_group_commit_jobs",
    "Submissions that share a transaction.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
COMMIT_WAIT: Final = Histogram(
    "jobgate_group_commit_wait_seconds",
    "Time from the arrival of the first submission of a transaction to the beginning of the transaction.",
    buckets=SHORT_SECONDS,
)
COMMIT_DURATION: Final = Histogram(
    "jobgate_group_commit_duration_seconds", "Duration of the transactions of submissions.", buckets=SHORT_SECONDS
)
CLOCK_DIFFERENCE: Final = ComputedMetric(
    "gauge",
    "jobgate_clock_difference_seconds",
    "Seconds by which a clock is ahead of the time of the installation: that of the database, or of this host.",
    ("clock",),
)
CLOCK_STEPS: Final = Counter(
    "jobgate_clock_steps_total",
    "Steps of clocks that this process has noticed: of the database, of its host, or of its own count (process).",
    ("clock",),
)
