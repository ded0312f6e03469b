"""Request metrics. They are labelled by route template, because raw paths would create a time series for each job."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Histogram, generate_latest

# From a cached poll, about 0.5 ms, to the longest wait of a long poll.
_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
# Prometheus scrapes every few seconds.
_FRESH_SECONDS: Final = 1.0
_NO_ROUTE: Final = "unmatched"
# A client may send any method: each unknown one would create a time series.
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


# Gets the metrics of this process, and adds those of the processes that serve on the same socket.
AddOthers = Callable[[str], Awaitable[str]]


class HttpMetrics:
    """The time series of one application. The exposition adds those of prometheus_client's default registry.

    `add_others` is given if other processes serve on the same socket.
    """

    def __init__(self, add_others: AddOthers | None = None) -> None:
        self._add_others = add_others
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "jobgate_http_request_duration_seconds",
            "Seconds from the first byte of a request to the last byte of its answer, with the wait of long polls.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        # prometheus_client looks series up under a lock. Their number is bounded, as methods and routes are.
        self._computing = asyncio.Lock()
        self._computed: tuple[float, bytes] = (float("-inf"), b"")
        self._series: dict[tuple[str, str, int], Histogram] = {}

    def observe(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request. `route` is the template of its path, None if it has no route."""
        method, route = method if method in _KNOWN_METHODS else "OTHER", route or _NO_ROUTE
        series = self._series.get((method, route, status))
        if series is None:
            series = self._series[method, route, status] = self._seconds.labels(method, route, str(status))
        series.observe(seconds)

    def exposition(self) -> str:
        """Return the metrics of this process."""
        return (generate_latest(self._registry) + generate_latest(REGISTRY)).decode()

    async def answer(self) -> Response:
        """Return the metrics, which are computed at most once in a second: no token is needed to request them."""
        async with self._computing:
            at, body = self._computed
            now = asyncio.get_running_loop().time()
            if now - at >= _FRESH_SECONDS:
                text = self.exposition()
                if self._add_others is not None:
                    text = await self._add_others(text)
                body = text.encode()
                self._computed = now, body
        return Response(body, media_type=CONTENT_TYPE_LATEST)
