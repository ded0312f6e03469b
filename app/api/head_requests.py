"""HEAD works like GET on every route: the same status and headers, without the body."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_IS_HEAD: Final = "jobgate.is_head"  # the key in the scope of a request that the application handles as GET


def is_head(scope: Scope) -> bool:
    """Return whether the client sent HEAD. A response without end sends its headers and ends."""
    return _IS_HEAD in scope


class HeadRequests:
    """Middleware that passes HEAD to the application as GET, and sends no body.

    The server must see the original scope, since it checks the length of the body that it sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
            elif not message.get("more_body", False):
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope, "method": "GET", _IS_HEAD: True}, receive, send_without_body)
