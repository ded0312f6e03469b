"""The stored time of the installation. Only the holder of the controller's lease changes it."""

from typing import Final

from app.db.postgres.engine import Connection
from app.domain.timekeeping import Correction, Reading

NOW: Final = "(clock_timestamp() + make_interval(secs => COALESCE((SELECT ahead FROM timekeeping), 0)))"
"""An expression for the time of the installation."""

# Until a controller has stored a row, the time of the installation is that of the database.
_READ: Final = """
SELECT clock_timestamp() AS at, COALESCE(t.ahead, 0) AS ahead, t.reached_at
FROM (SELECT) AS always LEFT JOIN timekeeping AS t ON true
"""
_STORE: Final = """
INSERT INTO timekeeping (ahead, reached_at, fault) VALUES ($1, $2, $3)
ON CONFLICT (singleton) DO UPDATE SET ahead = excluded.ahead, reached_at = excluded.reached_at, fault = excluded.fault
"""


async def read(connection: Connection) -> Reading:
    return Reading(**await connection.fetchrow(_READ))


async def store(connection: Connection, correction: Correction, fault: str) -> None:
    """Store the time. `fault` says which clock is wrong; it is empty if none is."""
    await connection.execute(_STORE, correction.ahead, correction.reached_at, fault)
