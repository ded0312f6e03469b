"""What wraps every request, as plain ASGI: a request id, a limit on bodies, an answer when all else failed."""

import logging
import re
import secrets
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import internal_problem, problem

REQUEST_ID: Final = b"x-request-id"
_DRAINED_LIMITS: Final = 16
_SAFE_ID: Final = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")

log = logging.getLogger(__name__)


class RequestIds:
    """Echoes X-Request-Id, or makes one, and answers with a problem what no handler has answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or secrets.token_hex(8).encode()
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [
                    *message.get("headers", ()),
                    (REQUEST_ID, request_id),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            log.debug("request %s ended: its client went away", request_id.decode())
        except Exception:
            log.exception("request %s failed: %s %s", request_id.decode(), scope["method"], scope["path"])
            if started:
                raise
            await internal_problem()(scope, receive, send_with_id)


def _given_id(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == REQUEST_ID and _SAFE_ID.fullmatch(value):
            return bytes(value)
    return None


def _asks_first(scope: Scope) -> bool:
    """Whether the client sends its body only once it is told to (Expect: 100-continue)."""
    return any(name == b"expect" for name, _ in scope["headers"])


class _BodyTooLarge(Exception):  # noqa: N818 - a signal between two functions of this module
    """The body has passed the limit while it was being read."""


class BodyLimit:
    """Answers 413 before the body is read where its length is told, and as soon as it is known where not."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._declared(scope) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        received = 0
        started = False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise _BodyTooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, watched)
        except _BodyTooLarge:
            if not started:
                await self._refuse(scope, receive, send)

    def _declared(self, scope: Scope) -> int:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and len(value) < 20:
                return int(value)
        return 0

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"the body is larger than {self._max_bytes} bytes"
        headers = {} if not _asks_first(scope) and await self._drained(receive) else {"Connection": "close"}
        response = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", detail, headers=headers)
        await response(scope, receive, send)

    async def _drained(self, receive: Receive) -> bool:
        """Throw the rest away, within reason: a client that is cut off while it sends never reads its answer."""
        left = self._max_bytes * _DRAINED_LIMITS
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return True
        return False
