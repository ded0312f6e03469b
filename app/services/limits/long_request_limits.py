"""Limits on long-running requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRequestLimits:
    """Limits on the long-running requests (streams, long polls and followed logs) that one process holds open.

    Args:
        total: most of them together.
        per_token: most of them for one token.
        logs: most logs that they have open. A merged log has one for each replica.
        recheck: seconds between two checks of the tokens.
        unconfirmed: seconds for which a successful check counts while Postgres does not answer. It is longer than a
            failover of Postgres takes.
    """

    total: int = 5000
    per_token: int = 2500
    logs: int = 150
    recheck: float = 3.0
    unconfirmed: float = 15.0
