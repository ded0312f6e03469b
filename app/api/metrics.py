"""Request metrics, by route template: raw paths would make a time series of every job."""

import time
from typing import Final

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Histogram, generate_latest
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_CLIENT_GONE: Final = 499  # as nginx counts a request whose client went away before it was complete
_NO_ROUTE: Final = "unmatched"
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class HttpMetrics:
    """The series of one app, told together with those that the process keeps in prometheus' own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "jobgate_http_request_duration_seconds",
            "From the request's first byte to the answer's last; streams and long polls wait on purpose.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def exposition(self) -> Response:
        lines = generate_latest(self._registry) + generate_latest(REGISTRY)
        return Response(lines, media_type=CONTENT_TYPE_LATEST)


class Measured:
    """Observes every request."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        began = time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except ClientDisconnect:
            status = _CLIENT_GONE
            raise
        finally:
            route = getattr(scope.get("route"), "path", _NO_ROUTE)
            method = scope["method"] if scope["method"] in _KNOWN_METHODS else "OTHER"
            self._metrics.observe(method, route, status, time.perf_counter() - began)
