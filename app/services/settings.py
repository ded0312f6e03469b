"""The settings of the services."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRequestLimits:
    """Limits of one process.

    Args:
        total: most long-running requests.
        per_token: most long-running requests of one token.
        logs: most logs among them.
        recheck: seconds between two checks of the tokens.
        unconfirmed: seconds for which a successful check counts while Postgres does not answer. It is longer than a
            failover of Postgres takes.
    """

    total: int = 5000
    per_token: int = 2500
    logs: int = 50
    recheck: float = 3.0
    unconfirmed: float = 15.0
