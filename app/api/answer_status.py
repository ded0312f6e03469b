"""Which status a request is recorded with, for the access log, the spans and the metrics alike."""

from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Send

_CLIENT_GONE: Final = 499  # nginx's status for a client that disconnected before the answer


class AnswerStatus:
    """What is known of an answer from the messages between the application and the server."""

    def __init__(self) -> None:
        self.size = 0
        self.is_complete = False
        self._status: int | None = None
        self._has_client = True

    def received_by(self, receive: Receive) -> Receive:
        """Return `receive` with a note of its messages."""

        async def receive_and_note() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" and not self.is_complete:
                # A handler may still answer, and the server drops the answer.
                self._has_client = False
                self._status = self._status or _CLIENT_GONE
            return message

        return receive_and_note

    def sent_by(self, send: Send) -> Send:
        """Return `send` with a note of its messages."""

        async def send_and_note(message: Message) -> None:
            await send(message)
            # Not before, because a stream repeats a send that would have waited for the client.
            if self._has_client:
                self.note_sent(message)

        return send_and_note

    def note_sent(self, message: Message) -> None:
        """Note a message for a client that is still there."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)

    def ended(self, error: Exception | None) -> int:
        """Return the status of a request that has ended, maybe with an error that reached the server."""
        if self._status is not None:
            return self._status
        return _CLIENT_GONE if error is None or isinstance(error, ClientDisconnect) else 500
