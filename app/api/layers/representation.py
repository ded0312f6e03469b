"""How an answer is represented: without its body for HEAD, and compressed for clients that accept that."""

from collections.abc import Awaitable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.layers.compression import CompressedAnswer, Compressor, accepts_gzip, field_value

_IS_HEAD: Final = "jobgate.is_head"  # the key in the scope of a request that the application handles as GET


def treat_as_get(scope: Scope) -> Scope:
    """Return the scope with the method GET in place of HEAD, which works like GET on every route.

    The server keeps the original scope, since it checks the length of the body that it sends.
    """
    return {**scope, "method": "GET", _IS_HEAD: True} if scope["method"] == "HEAD" else scope


def is_head(scope: Scope) -> bool:
    """Return whether the client sent HEAD. A response without end sends its headers and ends."""
    return _IS_HEAD in scope


class RepresentationLayer:
    """The second layer. It sends HEAD no body, and compresses answers if a `compressor` is given."""

    def __init__(self, app: ASGIApp, *, compressor: Compressor | None) -> None:
        self._app = app
        self._compressor = compressor

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            if is_head(scope):
                send = _without_body(send)
            accepted = field_value(scope["headers"], b"accept-encoding")
            if accepted and self._compressor is not None and accepts_gzip(accepted):
                send = CompressedAnswer(self._compressor, field_value(scope["headers"], b"if-none-match"), send)
        return self._app(scope, receive, send)


def _without_body(send: Send) -> Send:
    async def send_without_body(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
        elif not message.get("more_body", False):
            await send({"type": "http.response.body", "body": b""})

    return send_without_body
