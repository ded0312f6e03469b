"""The settings of the ASGI application."""

from dataclasses import dataclass
from typing import Final

from app.http_server.forwarding import NO_PROXIES, TrustedProxies

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Settings of the ASGI application; `app.settings` explains the defaults.

    Args:
        max_body_bytes: size of one request body.
        max_bodies_bytes: size of all request bodies that the process holds at once.
        cors_origins: origins whose pages may call the API.
        gzip_min_bytes: size from which answers are compressed for clients that accept it; 0 disables compression.
        access_log: whether a line is logged for each request.
        proxies: those whose X-Forwarded-For names the client.
        serves_metrics: whether /metrics is among the routes, or served on a port of its own.
        hosts: names that a Host header may have. Names enable the checks of `app.api.layers.browsers`.
    """

    max_body_bytes: int = 3 * 1024 * 1024
    max_bodies_bytes: int = 24 * 1024 * 1024
    cors_origins: tuple[str, ...] = ()
    gzip_min_bytes: int = 4096
    access_log: bool = False
    serves_metrics: bool = True
    hosts: tuple[str, ...] = ()
    proxies: TrustedProxies = NO_PROXIES
