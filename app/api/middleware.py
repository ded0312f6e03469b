"""ASGI middleware around every request: request ids, the answers to failed requests, and limits on bodies."""

import asyncio
import random
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.body_budget import ExceededLimit, IncomingBody
from app.api.errors import internal_problem, problem, shutdown_problem
from app.api.request_telemetry import begin_request
from app.fairness.byte_budget import UNCOUNTED_BYTES, ByteBudget
from app.http_server.metrics import REFUSALS

REQUEST_ID: Final = b"x-request-id"
# A refused body is read and discarded up to this multiple of its limit.
_DISCARDED_LIMITS: Final = 16
# Request ids appear in logs, so ids with other characters are replaced.
_SAFE_ID: Final = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")

log = structlog.get_logger(__name__)


class RequestIds:
    """Middleware that echoes or generates X-Request-Id, and answers requests that fail or are cancelled."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(scope["headers"])
        begin_request(scope).request_id = request_id.decode()
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), *identifying(request_id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            # Only the server cancels a request, when it ends and has waited long enough for open requests.
            if started:
                raise
            await shutdown_problem()(scope, receive, send_with_id)
        except ClientDisconnect:
            log.debug("request.disconnected", method=scope["method"], path=scope["path"])
        except Exception:
            log.exception("request.failed", method=scope["method"], path=scope["path"])
            if started:
                raise  # the server then closes the connection, so that the client sees an incomplete answer
            await internal_problem()(scope, receive, send_with_id)


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the X-Request-Id of a request, or a generated one if it has none that a log can contain."""
    for name, value in headers:
        if name == REQUEST_ID and _SAFE_ID.fullmatch(value):
            return bytes(value)
    # Not from `secrets`, which asks the system each time: an id only identifies log lines. Forked workers have
    # different ids, because Python seeds the generator again after a fork.
    return b"%016x" % random.getrandbits(64)


def identifying(request_id: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header fields of every answer: the request id, and the one that forbids to guess content types."""
    return (REQUEST_ID, request_id), (b"x-content-type-options", b"nosniff")


def _expects_continue(scope: Scope) -> bool:
    """Return whether the client sends its body only after 100 Continue."""
    return any(name == b"expect" for name, _ in scope["headers"])


def _declared(scope: Scope) -> int | None:
    """Return the length of the body, which is 0 for a request without one, or None if the head does not say it."""
    declared: int | None = 0
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length":
            declared = int(value) if value.isdigit() and len(value) < 20 else None
    return declared


class _Refused(Exception):  # noqa: N818 - a signal between two functions of this module
    """A body exceeds a limit while the application reads it. `is_read` says that nothing of it is left to read."""

    def __init__(self, exceeded: ExceededLimit, *, is_read: bool) -> None:
        super().__init__(exceeded)
        self.exceeded = exceeded
        self.is_read = is_read


def _first(group: BaseExceptionGroup[_Refused]) -> _Refused:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, _Refused)
    return error


class BodyLimit:
    """Middleware that bounds the body of each request, and all bodies that the process holds at once.

    A body that is too large is answered with 413; if its length is declared, before it is read. A body for which there
    is no memory at present is answered with 503. The memory of a body is free again when the answer begins, so that a
    stream does not hold it.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_bytes_at_once: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._budget = ByteBudget(max_bytes_at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = _declared(scope)
        if declared is not None and declared > self._max_bytes:
            await self._refuse(_Refused(ExceededLimit.ONE_BODY, is_read=False), scope, receive, send)
        elif declared is not None and declared <= UNCOUNTED_BYTES:
            await self._app(scope, receive, send)  # the server ends the body at its declared length
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and refuse the body if it exceeds a limit."""
        now = asyncio.get_running_loop().time
        body = IncomingBody(self._max_bytes, self._budget, now())
        started = False

        async def counted() -> Message:
            try:
                message = await body.next(receive)
            except TimeoutError:
                if not body.is_evicted:
                    raise
                raise _Refused(ExceededLimit.ALL_BODIES, is_read=False) from None
            exceeded = body.add(len(message.get("body", b"")), now())
            if exceeded is not None:
                raise _Refused(exceeded, is_read=not message.get("more_body", False))
            return message

        async def releasing(message: Message) -> None:
            nonlocal started
            started = True
            body.release()
            await send(message)

        refused: _Refused | None = None
        try:
            await self._app(scope, counted, releasing)
        except* _Refused as group:  # a handler that reads its body in a task raises a group
            refused = _first(group)
        finally:
            body.release()
        if refused is not None and not started:
            # A slow client would delay its error until it has sent the rest of the body.
            is_slow = body.is_evicted
            await self._refuse(refused, scope, receive, send, discards=not is_slow)

    async def _refuse(
        self, refused: _Refused, scope: Scope, receive: Receive, send: Send, *, discards: bool = True
    ) -> None:
        is_read = refused.is_read or (discards and not _expects_continue(scope) and await self._discard(receive))
        headers = {} if is_read else {"Connection": "close"}
        if refused.exceeded is ExceededLimit.ONE_BODY:
            detail = f"the body is larger than {self._max_bytes} bytes, the limit for one request"
            response = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", detail, headers=headers)
        else:
            REFUSALS.labels("bodies").inc()
            detail = (
                f"the request bodies in progress have more than {self._budget.max_bytes} bytes together: "
                "repeat the request after Retry-After seconds"
            )
            response = problem(HTTPStatus.SERVICE_UNAVAILABLE, "TooManyBodies", detail, headers=headers)
        await response(scope, receive, send)

    async def _discard(self, receive: Receive) -> bool:
        """Read the rest of the body and discard it. Return False if it is too long to be read.

        Many clients read the answer only after they have sent the whole request.
        """
        left = self._max_bytes * _DISCARDED_LIMITS
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return True
        return False
