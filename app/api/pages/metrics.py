"""The application of the port for metrics."""

from http import HTTPStatus

from fastapi import Response
from starlette.types import Receive, Scope, Send

from app.api.answers.errors import HTTP_CODES, problem
from app.api.layers.answer import OutgoingAnswer
from app.api.metrics import HttpMetrics
from app.fairness.share import begin, release


class MetricsApp:
    """Serves /metrics, and nothing else."""

    def __init__(self, metrics: HttpMetrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await begin(scope)
        try:
            response = await self._response(scope)
            await response(scope, receive, OutgoingAnswer(receive, send).send)
        finally:
            release()

    async def _response(self, scope: Scope) -> Response:
        if scope["path"] != "/metrics":
            return problem(HTTPStatus.NOT_FOUND, HTTP_CODES[404], "this port serves only /metrics")
        if scope["method"] not in ("GET", "HEAD"):
            return problem(
                HTTPStatus.METHOD_NOT_ALLOWED,
                HTTP_CODES[405],
                "this route does not support this method",
                headers={"Allow": "GET, HEAD"},
            )
        return await self._metrics.answer()
