"""The limits of a session with a cluster. This module imports no HTTP library, so that settings can use it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportLimits:
    """Timeouts in seconds, and how many connections may be open at once."""

    connect: float = 5.0
    request: float = 30.0
    listing: float = 60.0
    connections: int = 100
