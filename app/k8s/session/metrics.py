"""Metrics of the requests to the API server."""

from http import HTTPStatus
from typing import Final

from prometheus_client import Counter, Histogram

from app.base.instruments import SHORT_SECONDS

_REQUESTS: Final = Counter(
    "jobgate_cluster_requests_total",
    "Requests to the API server by verb and status of the answer; other: an unknown status, none: no answer.",
    ("verb", "code"),
)
_SECONDS: Final = Histogram(
    "jobgate_cluster_request_duration_seconds",
    "Time from the request to the end of its answer; for watches and logs, to the beginning of the answer.",
    ("verb",),
    buckets=SHORT_SECONDS,
)
# A pod behind the proxy of the API server may answer with any number: each unknown one would create a time series.
_CODES: Final = {int(status): str(int(status)) for status in HTTPStatus}
# prometheus_client looks series up under a lock. Their number is bounded, as verbs and codes are.
_series: dict[tuple[str, str], tuple[Counter, Histogram]] = {}


def count_request(verb: str, status: int | None, seconds: float) -> None:
    """Count a request. `status` is None if no answer arrived."""
    code = "none" if status is None else _CODES.get(status, "other")
    series = _series.get((verb, code))
    if series is None:
        series = _series[verb, code] = (_REQUESTS.labels(verb, code), _SECONDS.labels(verb))
    counter, histogram = series
    counter.inc()
    histogram.observe(seconds)
