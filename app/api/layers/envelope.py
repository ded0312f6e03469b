"""The envelope of DI-orchestrator's REST API, for its answers and for every error below its path.

problem (of routes, limits, handlers) ─▶ EnvelopeOfErrors ─▶ {"success": false, "code": 1, "message": …, "data": null}
"""

from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from app.api.answers.errors import PROBLEM_TYPE
from app.api.answers.responses import JSON

# Upstream answers 501 to these methods if a route lacks them. Any other method is refused with 405 as everywhere.
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


def envelope(message: str, data: object = None, *, success: bool = True) -> bytes:
    """Return the body of an answer. Upstream's code is 0 for success and 1 for every error."""
    return msgspec.json.encode({"success": success, "code": 0 if success else 1, "message": message, "data": data})


class EnvelopeOfErrors:
    """Converts one answer if it is a problem. It holds the problem until that is complete."""

    def __init__(self, send: Send, method: str) -> None:
        self._send = send
        self._method = method
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
        body = envelope(_message(msgspec.json.decode(self._body)), success=False)
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-type"] = JSON
        headers["content-length"] = str(len(body))
        status = _upstreams_status(HTTPStatus(start["status"]), self._method)
        await self._send({**start, "status": status.value, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _upstreams_status(status: HTTPStatus, method: str) -> HTTPStatus:
    """Return the status that upstream uses in place of one that its clients do not know."""
    if status is HTTPStatus.UNPROCESSABLE_ENTITY:
        return HTTPStatus.BAD_REQUEST
    if status is HTTPStatus.METHOD_NOT_ALLOWED and method in _METHODS:
        return HTTPStatus.NOT_IMPLEMENTED
    return status


def _is_problem(start: Message) -> bool:
    return MutableHeaders(raw=list(start["headers"])).get("content-type") == PROBLEM_TYPE


def _message(problem: dict[str, Any]) -> str:
    """Return the detail of a problem and of all its errors, with what is accepted, in one line."""
    return "; ".join([problem["detail"], *map(_error, problem.get("errors", ()))])


def _error(error: dict[str, Any]) -> str:
    accepted = error.get("accepted")
    return f"{error['pointer']}: {error['detail']}" + (f" (accepted: {accepted})" if accepted else "")
