"""The errors of DI-orchestrator's REST in its envelope: whoever refuses below that path, the client reads one shape.

problem (routes, limits, handlers) ─▶ Enveloped ─▶ {"success": false, "code": 1, "message": …, "data": null}
"""

from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.bodies import JSON
from app.api.errors import PROBLEM_TYPE

_SUCCEEDED: Final = 0
_FAILED: Final = 1
# Statuses that upstream's clients do not know, and how upstream says the same.
_UPSTREAM: Final = {
    HTTPStatus.UNPROCESSABLE_ENTITY: HTTPStatus.BAD_REQUEST,
    HTTPStatus.METHOD_NOT_ALLOWED: HTTPStatus.NOT_IMPLEMENTED,
}


def succeeded(message: str, data: object = None) -> bytes:
    """The body of an answer that is no error."""
    return _envelope(_SUCCEEDED, message, data)


def _envelope(code: int, message: str, data: object) -> bytes:
    return msgspec.json.encode({"success": code == _SUCCEEDED, "code": code, "message": message, "data": data})


class Enveloped:
    """Below the path `base`, turns every problem into the envelope; all else passes as it is."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self._app = app
        self._base = base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self._base):
            send = _Rewriter(send)
        await self._app(scope, receive, send)


class _Rewriter:
    """Holds a problem back until it is whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_envelope(self._start)

    async def _send_envelope(self, start: Message) -> None:
        body = _envelope(_FAILED, _sentence(msgspec.json.decode(self._body)), None)
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-type"] = JSON
        headers["content-length"] = str(len(body))
        status = HTTPStatus(start["status"])
        await self._send({**start, "status": _UPSTREAM.get(status, status).value, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _is_problem(start: Message) -> bool:
    return MutableHeaders(raw=list(start["headers"])).get("content-type") == PROBLEM_TYPE


def _sentence(problem: dict[str, Any]) -> str:
    """All that the problem says, in one line."""
    details = [f"{error['pointer']}: {error['detail']}" for error in problem.get("errors", ())]
    return "; ".join([problem["detail"], *details])
