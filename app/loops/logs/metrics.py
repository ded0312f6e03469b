"""Metrics of the processes that keep logs."""

from typing import Final

from prometheus_client import Counter

from app.base.instruments import ComputedMetric

TEXT_BYTES: Final = Counter("jobgate_kept_log_bytes_total", "Bytes of text of logs that were written to the log store.")
STORED_BYTES: Final = Counter(
    "jobgate_kept_log_stored_bytes_total", "Bytes of the objects that were written to the log store."
)
GAPS: Final = Counter(
    "jobgate_kept_log_gaps_total", "Places at which a kept log lacks lines that were lost, by reason.", ("reason",)
)
CUTS: Final = Counter("jobgate_kept_log_cuts_total", "Logs that were cut, by the limit: job or namespace.", ("limit",))
STORE_ERRORS: Final = Counter("jobgate_log_store_errors_total", "Calls to the log store that failed.")
READ_ERRORS: Final = Counter(
    "jobgate_kept_log_read_errors_total", "Reads of logs from the cluster that failed, which are repeated."
)
FOLLOWED: Final = ComputedMetric("gauge", "jobgate_kept_logs_followed", "Logs that this process reads now.")
WAITING: Final = ComputedMetric(
    "gauge", "jobgate_kept_logs_waiting", "Logs that wait for their turn to be read by this process."
)
UNWRITTEN: Final = ComputedMetric(
    "gauge", "jobgate_kept_log_unwritten_bytes", "Bytes of text that this process has read and not written yet."
)
LAG: Final = ComputedMetric(
    "gauge",
    "jobgate_kept_log_lag_seconds",
    "Age of the oldest text that this process has read and not written yet; 0 without one.",
)
STORE_FAILING: Final = ComputedMetric(
    "gauge", "jobgate_log_store_failing", "Whether this process cannot write to the log store now: 1 or 0."
)
