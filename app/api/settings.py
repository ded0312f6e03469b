"""What of HTTP can be set."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """`max_body_bytes` bounds a request body, `max_bodies_bytes` all that are held at once.

    Browsers may call from `cors_origins`, none by default. `hosts` are the names that a Host header may have and turn
    the checks of `app.api.browsers` on; empty, any will do.
    """

    max_body_bytes: int = 3 * 1024 * 1024
    max_bodies_bytes: int = 24 * 1024 * 1024
    cors_origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
