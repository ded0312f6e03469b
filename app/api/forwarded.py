"""ASGI middleware that takes the address of a client from trusted proxies."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app.http_server.forwarding import TrustedProxies


class ForwardedClients:
    """Middleware that sets the client of a request from a trusted proxy to the client of that proxy."""

    def __init__(self, app: ASGIApp, *, proxies: TrustedProxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if scope["type"] == "http" and client:
            peer, port = client
            address = self._proxies.client_of(peer, scope["headers"])
            scope = {**scope, "client": (address, port if address == peer else 0)}
        await self._app(scope, receive, send)
