"""What wraps every request, as plain ASGI: a request id, a limit on bodies, an answer when all else failed."""

import asyncio
import logging
import re
import secrets
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.body_budget import BodyBudget, Excess, Receipt
from app.api.errors import internal_problem, problem
from app.http_server.metrics import REFUSALS

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


class _Refused(Exception):  # noqa: N818 - a signal between two functions of this module
    """The body has passed a limit while it was being read. `is_read` says that nothing of it is left to read."""

    def __init__(self, excess: Excess, *, is_read: bool) -> None:
        super().__init__(excess)
        self.excess = excess
        self.is_read = is_read


def _first(group: BaseExceptionGroup[_Refused]) -> _Refused:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, _Refused)
    return error


class BodyLimit:
    """Bounds the body of each request, and all bodies that the process holds at once.

    A body that is too large is answered 413, before it is read if its length is declared. A body for which there is no
    memory now is answered 503. The memory is free again when the answer begins: a stream does not hold it.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_bytes_at_once: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._budget = BodyBudget(max_bytes_at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._declared(scope) > self._max_bytes:
            await self._refuse(_Refused(Excess.OF_ONE, is_read=False), scope, receive, send)
            return
        now = asyncio.get_running_loop().time
        receipt = Receipt(self._max_bytes, self._budget, now())
        started = False

        async def counted() -> Message:
            try:
                message = await receipt.next(receive)
            except TimeoutError:
                if not receipt.is_evicted:
                    raise
                raise _Refused(Excess.OF_ALL, is_read=False) from None
            excess = receipt.add(len(message.get("body", b"")), now())
            if excess is not None:
                raise _Refused(excess, is_read=not message.get("more_body", False))
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            receipt.release()
            await send(message)

        refused: _Refused | None = None
        try:
            await self._app(scope, counted, watched)
        except* _Refused as group:  # a request that reads its body in a task raises a group
            refused = _first(group)
        finally:
            receipt.release()
        if refused is not None and not started:
            is_slow = receipt.is_evicted
            await self._refuse(refused, scope, receive, send, drains=not is_slow)

    def _declared(self, scope: Scope) -> int:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and len(value) < 20:
                return int(value)
        return 0

    async def _refuse(
        self, refused: _Refused, scope: Scope, receive: Receive, send: Send, *, drains: bool = True
    ) -> None:
        is_read = refused.is_read or (drains and not _asks_first(scope) and await self._drained(receive))
        headers = {} if is_read else {"Connection": "close"}
        if refused.excess is Excess.OF_ONE:
            detail = f"the body is larger than {self._max_bytes} bytes"
            response = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", detail, headers=headers)
        else:
            REFUSALS.labels("bodies").inc()
            detail = f"the bodies under way have more than {self._budget.max_bytes} bytes together: repeat it later"
            response = problem(HTTPStatus.SERVICE_UNAVAILABLE, "TooManyBodies", detail, headers=headers)
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
