"""Responses to long-running requests. They end early if `app.services.limits.long_requests` ends the request, or if the
client disconnects or does not read.

    track ─▶ open ─▶ start ─▶ piece ─▶ piece ─▶ … ─▶ the end, or a final piece with the reason of an early end
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import ClassVar, Final

import structlog
from fastapi import Request, Response
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

from app.api.layers.representation import is_head
from app.api.requests.dependencies import Caller
from app.base.cancellation import TaskGroup
from app.domain.errors import DomainError
from app.services.limits.long_requests import EndReason, LongRequest, LongRequestKind, refusal

# Seconds for a client to make room for a piece. The server buffers at most 64 KiB, so a client that reads is faster.
WRITE_SECONDS: Final = 30.0
_FINAL_PIECE_SECONDS: Final = 1.0

log = structlog.get_logger(__name__)


@asynccontextmanager
async def track_while_connected(
    caller: Caller, kind: LongRequestKind, seconds: float | None = None
) -> AsyncIterator[LongRequest]:
    """Track a long-running request for at most `seconds`. It also ends when its client disconnects.

    Raises:
        TooManyRequests: a limit is reached; nothing was started.
    """
    async with caller.services.long_requests.track(caller.principal, kind, seconds) as tracked:
        failure: Exception | None = None
        async with TaskGroup() as group:
            listening = group.create_task(_end_on_disconnect(caller.request, tracked))
            try:
                yield tracked
            except Exception as error:  # noqa: BLE001 - raised again below: the TaskGroup would wrap it into a group
                failure = error
            finally:
                listening.cancel()
        if failure is not None:
            raise failure


async def _end_on_disconnect(request: Request, tracked: LongRequest) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    tracked.end(EndReason.DISCONNECTED)


class LongResponse(Response, ABC):
    """The response to a long-running request. It is sent in pieces, for as long as its client wants.

    If `is_cut_short`, a response that ends early has no last chunk, which clients report as an error.
    """

    is_cut_short: ClassVar[bool] = False

    def __init__(self, caller: Caller, kind: LongRequestKind, seconds: float | None = None) -> None:
        # Like Starlette's StreamingResponse: `super().__init__` would send the content-length of an empty body.
        self.status_code = 200
        self.background = None
        self.init_headers()
        self._caller = caller
        self._kind = kind
        self._seconds = seconds
        self._started = False
        self._blocked = False
        self._is_head = False
        self._tracked: LongRequest | None = None
        self._send: Send | None = None

    @abstractmethod
    async def open(self) -> AsyncGenerator[bytes, None]:
        """Set the headers and return the pieces. An error raised here is answered in place of the response."""

    @abstractmethod
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        """Return the last piece of a response that ends early: because of `ending`, or else because of a failure."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        failure: DomainError | None = None
        self._is_head, self._send = is_head(scope), send
        async with track_while_connected(self._caller, self._kind, self._seconds) as tracked:
            self._tracked = tracked
            try:
                await self._send_all(send)
            except DomainError as error:
                if not self._started:
                    raise
                failure = error
        # A final piece would not be read. The server closes the connection of an unfinished response.
        if self._blocked or tracked.end_reason is EndReason.DISCONNECTED:
            return
        if tracked.end_reason not in (None, EndReason.TIMEOUT):
            failure = refusal(tracked.end_reason)
        await self._finish(send, tracked.end_reason, failure)

    def reserve_logs(self, logs: int) -> bool:
        """Set the number of open logs of the response, and return True. Return False if the limits do not permit it."""
        assert self._tracked is not None
        return self._caller.services.long_requests.reserve_logs(self._tracked, logs)

    def send_at_once(self, piece: bytes) -> bool:
        """Send a piece while the task of the response waits for its next one.

        Return False, with nothing sent, if the task has to send it: the client has to make room first, the send has
        failed, or the response has been ended. The task then calls the layers again with the piece, so a layer
        notes a piece only after the server has taken it, and does not wait after that.
        """
        if self._send is None or self._tracked is None or self._tracked.end_reason is not None:
            return False
        sending = self._send(_body(piece)).__await__()
        try:
            next(sending)
            # The server waits before it writes, so nothing of the piece has been written.
            sending.close()
        except StopIteration:
            return True
        except Exception:  # noqa: BLE001 - the task repeats the send, and so has the error
            return False
        return False

    async def _send_all(self, send: Send) -> None:
        async with aclosing(await self.open()) as pieces:
            self._started = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._is_head:
                return
            async for piece in pieces:
                await self._write(send, piece, WRITE_SECONDS)
                if self._blocked:
                    log.info("request.client_does_not_read", path=self._caller.request.url.path)
                    return

    async def _finish(self, send: Send, ending: EndReason | None, failure: DomainError | None) -> None:
        if failure is None:
            await self._write(send, b"", _FINAL_PIECE_SECONDS, more=False)
            return
        if not self._started:
            raise failure
        await self._write(send, self.final_piece(ending, failure), _FINAL_PIECE_SECONDS, more=self.is_cut_short)

    async def _write(self, send: Send, piece: bytes, seconds: float, *, more: bool = True) -> None:
        """Send a piece. If the client does not make room for it in time, mark the response as blocked."""
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                await send(_body(piece, more=more))
        except TimeoutError:
            if not timeout.expired():
                raise  # the server raised it, not this timeout
            self._blocked = True


def _body(piece: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": piece, "more_body": more}
