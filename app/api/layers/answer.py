"""The answer to one request, on its way from the application to the server."""

from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Send

from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.fairness.share import begin_sending

PIECE: Final = 64 * 1024
"""Bytes of a body that the transport gets at once: it copies what the client does not take."""
_CLIENT_GONE: Final = 499  # nginx's status for a client that disconnected before the answer


class OutgoingAnswer:
    """Adds header fields to an answer, and notes its status and size for the metrics, the access log and the span.

    A long body is sent in pieces, as the client takes them. The share of the request holds its bytes meanwhile.
    `size` is the length of the body that was sent. `is_started` says that its head was.
    """

    def __init__(self, receive: Receive, send: Send, fields: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.size = 0
        self.is_started = self.is_complete = False
        self._receive = receive
        self._send = send
        self._fields = fields
        self._status: int | None = None
        self._has_client = True

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self.is_complete:
            # A handler may still answer, and the server drops the answer.
            self._has_client = False
            self._status = self._status or _CLIENT_GONE
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_started = True
            message["headers"] = [*message.get("headers", ()), *self._fields]
            await self._send(message)
            if self._has_client:
                self._status = message["status"]
            return
        body, has_more = message.get("body", b""), message.get("more_body", False)
        # A stream repeats a piece that had to wait, so its pieces stay whole.
        if len(body) <= UNCOUNTED_BYTES or has_more:
            await self._send(message)
        else:
            await self._send_in_pieces(body)
        # Not before the send, because a stream repeats one that would have waited for the client.
        if self._has_client:
            self.size += len(body)
            self.is_complete = not has_more

    async def _send_in_pieces(self, body: bytes) -> None:
        begin_sending(len(body))
        for begin in range(0, len(body), PIECE):
            piece, has_more = body[begin : begin + PIECE], begin + PIECE < len(body)
            await self._send({"type": "http.response.body", "body": piece, "more_body": has_more})

    def status(self, error: Exception | None) -> int:
        """Return the status of a request that has ended, maybe with an error that reaches the server."""
        if self._status is not None:
            return self._status
        return _CLIENT_GONE if error is None or isinstance(error, ClientDisconnect) else 500
