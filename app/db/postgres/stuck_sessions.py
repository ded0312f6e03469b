"""Ends database sessions whose client froze at a moment that no timeout of PostgreSQL covers.

The driver prepares a statement in one message and runs it in the next. A process that freezes between the two keeps
its transaction open: PostgreSQL waits for the second message, during which `statement_timeout` cannot fire, and
`idle_in_transaction_session_timeout` does not apply, because the session counts as active. Its locks (a job's row, the
lease, the publisher's lock) would block every other process for as long as the client is frozen.
"""

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from app.base.cancellation import rounds
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable

log = structlog.get_logger(__name__)

# Longer than every timeout of a transaction of jobgate (10 s), so that only sessions beyond those timeouts are ended.
PATIENCE: Final = timedelta(seconds=20)
_PERIOD_SECONDS: Final = 5.0
# Sessions of the same user, which any user may end. A client that copies data into a table also waits in this state;
# jobgate has no such statement.
_END = """
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name ~ '^jobgate( |$)'
  AND state = 'active' AND wait_event = 'ClientRead'
  AND xact_start IS NOT NULL AND state_change < clock_timestamp() - $1::interval
"""


class StuckSessions:
    """Ends the stuck sessions of all jobgate processes every few seconds. Each process runs one of these loops."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def run(self) -> None:
        for _ in rounds():
            try:
                if ended := await end_stuck_sessions(self._db, PATIENCE):
                    log.warning("database.stuck_sessions_ended", sessions=ended)
            except DatabaseUnavailable:
                pass  # a server that does not answer is reported by every other loop
            await asyncio.sleep(_PERIOD_SECONDS)


async def end_stuck_sessions(db: Database, patience: timedelta) -> int:
    """End the sessions that have waited for the rest of a statement this long, and return how many."""
    async with db.read() as connection:
        ended: int = await connection.fetchval(_END, patience)
    return ended
