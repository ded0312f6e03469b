"""Protects the process and its users: against web pages of other origins, and against bodies that take its memory."""

from collections.abc import Awaitable
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answers.errors import problem
from app.api.layers.body_budget import BodyRefused, ExceededLimit, IncomingBody, body_memory
from app.api.layers.browsers import BrowserGuard
from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.http_server.metrics import REFUSALS

# A refused body is read and discarded up to this multiple of its limit.
_DISCARDED_LIMITS: Final = 16


def _expects_continue(scope: Scope) -> bool:
    """Return whether the client sends its body only after 100 Continue."""
    return any(name == b"expect" for name, _ in scope["headers"])


def _declared_length(scope: Scope) -> int | None:
    """Return the length of the body, which is 0 for a request without one, or None if the head does not say it."""
    declared: int | None = 0
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length":
            declared = int(value) if value.isdigit() and len(value) < 20 else None
    return declared


def _first(group: BaseExceptionGroup[BodyRefused]) -> BodyRefused:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, BodyRefused)
    return error


class ProtectionLayer:
    """The innermost layer. It refuses requests of browsers that `guard` refuses, and bounds bodies.

    There is a limit for each body, and one for all that the process holds at once. A body that is too large is answered
    with 413; if its length is declared, before it is read. A body for which there is no memory in time is answered
    with 503. The memory of a body is free again when the answer begins, so that a stream does not hold it.
    """

    def __init__(self, app: ASGIApp, *, guard: BrowserGuard | None, max_bytes: int, max_bytes_at_once: int) -> None:
        self._app = app
        self._guard = guard
        self._max_bytes = max_bytes
        self._memory = body_memory(max_bytes_at_once, max_bytes)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        if self._guard is not None and (refusal := self._guard.refusal(scope)) is not None:
            return refusal(scope, receive, send)
        declared = _declared_length(scope)
        if declared is None or UNCOUNTED_BYTES < declared <= self._max_bytes:
            return self._count(scope, receive, send, declared)
        if declared > self._max_bytes:
            return self._refuse(BodyRefused(ExceededLimit.ONE_BODY, is_read=False), scope, receive, send)
        return self._app(scope, receive, send)  # the server ends the body at its declared length

    async def _count(self, scope: Scope, receive: Receive, send: Send, declared: int | None) -> None:
        """Run the application, and refuse the body if it exceeds a limit."""
        body = IncomingBody(declared, self._max_bytes, self._memory)
        started = False

        async def releasing(message: Message) -> None:
            nonlocal started
            started = True
            body.release()
            await send(message)

        refused: BodyRefused | None = None
        try:
            await self._app(scope, partial(body.next, receive), releasing)
        except* BodyRefused as group:  # a handler that reads its body in a task raises a group
            # Without the traceback: its frames hold what has arrived of the body, and this one makes it a cycle.
            refused = _first(group).with_traceback(None)
        finally:
            body.release()
        if refused is not None and not started:
            # A slow client would delay its error until it has sent the rest of the body.
            await self._refuse(refused, scope, receive, send, discards=not body.is_evicted)

    async def _refuse(
        self, refused: BodyRefused, scope: Scope, receive: Receive, send: Send, *, discards: bool = True
    ) -> None:
        is_read = refused.is_read or (discards and not _expects_continue(scope) and await self._discard(receive))
        headers = {} if is_read else {"Connection": "close"}
        if refused.exceeded is ExceededLimit.ONE_BODY:
            detail = f"the body is larger than {self._max_bytes} bytes, the limit for one request"
            response = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", detail, headers=headers)
        else:
            REFUSALS.labels("bodies").inc()
            detail = (
                f"other request bodies use the {self._memory.budget.max_bytes} bytes that this process has for them: "
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
