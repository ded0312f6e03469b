"""Timeouts of connections to PostgreSQL."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTimeouts:
    """Limits in seconds. Without them, a frozen server would occupy a connection for ever.

    The server enforces `statement`, `lock` and `idle_in_transaction`. The client drops a connection on which it
    received no answer `silence` seconds after the end of `statement`.
    """

    connect: float = 10.0
    acquire: float = 10.0
    statement: float = 10.0
    lock: float = 5.0
    idle_in_transaction: float = 10.0
    silence: float = 5.0

    @classmethod
    def of(cls, statement: float) -> Self:
        """Derive all timeouts from the one of statements."""
        # Shorter than the timeout of the statement, which would otherwise end every wait for a lock with its own error.
        half = statement / 2
        return cls(
            connect=statement,
            acquire=statement,
            statement=statement,
            lock=half,
            idle_in_transaction=statement,
            silence=half,
        )
