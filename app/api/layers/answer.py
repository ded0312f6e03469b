"""The answer to one request, on its way from the application to the server."""

from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Send

_CLIENT_GONE: Final = 499  # nginx's status for a client that disconnected before the answer


class OutgoingAnswer:
    """Adds header fields to an answer, and notes its status and size for the metrics, the access log and the span.

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
        is_start = message["type"] == "http.response.start"
        if is_start:
            self.is_started = True
            message["headers"] = [*message.get("headers", ()), *self._fields]
        await self._send(message)
        # Not before, because a stream repeats a send that would have waited for the client.
        if not self._has_client:
            return
        if is_start:
            self._status = message["status"]
        else:
            self.size += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)

    def status(self, error: Exception | None) -> int:
        """Return the status of a request that has ended, maybe with an error that reaches the server."""
        if self._status is not None:
            return self._status
        return _CLIENT_GONE if error is None or isinstance(error, ClientDisconnect) else 500
